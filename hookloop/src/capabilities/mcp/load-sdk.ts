import { AgentError, messageOf } from '../../errors.ts'

/** The official SDK. */
export type Sdk = typeof import('@modelcontextprotocol/client')

const PACKAGE = '@modelcontextprotocol/client'

/** Loads the SDK, an optional peer dependency. */
export async function loadSdk(): Promise<Sdk> {
  try {
    return await import('@modelcontextprotocol/client')
  } catch (thrown) {
    const isMissing = (thrown as { code?: unknown }).code === 'ERR_MODULE_NOT_FOUND'
    throw new AgentError(
      'AGENT_INVALID_OPTION',
      isMissing
        ? `mcp: it needs the package ${PACKAGE}. Install it with: npm install ${PACKAGE}`
        : `mcp: the package ${PACKAGE} cannot be loaded: ${messageOf(thrown)}`,
      { value: PACKAGE, cause: thrown },
    )
  }
}
