import { existsSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Agent } from '../../core/agent/agent.ts'
import type { createAgent } from '../../create-agent.ts'
import { messageOf } from '../../errors.ts'
import { UsageError } from '../usage-error.ts'

export type CreateAgentOptions = Parameters<typeof createAgent>[0]

/** The default export of an agent file: an agent, or the options of one, with or without a model. */
type AgentFile =
  | { readonly agent: Agent<unknown> }
  | { readonly options: Omit<CreateAgentOptions, 'model'> & Partial<Pick<CreateAgentOptions, 'model'>> }

export async function loadAgent(file: string): Promise<AgentFile> {
  const exported = await loadDefault(file, 'The agent file')
  if (isAgent(exported)) return { agent: exported }
  if (typeof exported === 'object' && exported !== null && !Array.isArray(exported)) {
    return { options: exported }
  }
  throw new UsageError(
    `The agent file ${file}: its default export must be an agent, or the options of createAgent. ` +
      'Write: export default createAgent({ … })',
  )
}

/** The default export of a module. `what` says in error messages what it is. */
export async function loadDefault(file: string, what: string): Promise<unknown> {
  const path = resolve(file)
  if (!existsSync(path)) throw new UsageError(`${what} ${file}: file not found.`)
  shareLibrary()
  try {
    const loaded = (await import(pathToFileURL(path).href)) as { readonly default?: unknown }
    return loaded.default
  } catch (thrown) {
    throw new UsageError(`${what} ${file} cannot be loaded: ${messageOf(thrown)}${hintFor(file, thrown)}`, {
      cause: thrown,
    })
  }
}

/** In a package of type commonjs, which is what `npm init` creates, a .js or .ts file is not an ES module. */
function hintFor(file: string, thrown: unknown): string {
  const extension = /\.([jt]s)$/.exec(file)?.[1]
  const isSyntaxOfModules =
    thrown instanceof SyntaxError && /outside a module|token 'export'|bodies of modules/.test(thrown.message)
  if (extension === undefined || !isSyntaxOfModules) return ''
  return `\nIts package has the type commonjs. Rename the file to .m${extension}, or run: npm pkg set type=module`
}

function isAgent(value: unknown): value is Agent<unknown> {
  const { run, stream, describe } = (value ?? {}) as { readonly [K in keyof Agent]?: unknown }
  return typeof run === 'function' && typeof stream === 'function' && typeof describe === 'function'
}

let isShared = false

/**
 * Makes every file that imports `hookloop` get the copy that runs this command. Hooks and tools are recognized by identity,
 * so those of another copy would not be.
 */
function shareLibrary(): void {
  if (isShared) return
  isShared = true
  const isSource = import.meta.url.endsWith('.ts')
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier !== 'hookloop' && !specifier.startsWith('hookloop/')) return next(specifier, context)
      const conditions = isSource ? [...context.conditions, 'hookloop-source'] : context.conditions
      return next(specifier, { ...context, conditions, parentURL: import.meta.url })
    },
  })
}
