import { tool, type Tool } from '../../plugin.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import type { Schema } from '../../values/schema.ts'
import { Deadline } from '../../system/timeout.ts'
import type { Connection } from './connection.ts'
import { toText } from './content.ts'
import type { ServerTool } from './server-tools.ts'

const MAX_ERROR_CHARS = 8_192
/** Checking larger outputs could take seconds. */
const MAX_CHECKED_CHARS = 1_048_576

/** A tool of a server as a tool of the agent. All hooks apply to it, and a misbehaving server is a failed call. */
export function offeredTool(connection: Connection, from: ServerTool): Tool {
  const { settings } = connection
  return tool({
    name: from.name,
    description: from.description,
    input: schemaOf(from),
    ask: settings.asks(from.ownName),
    concurrent: settings.isConcurrent(from.ownName),
    timeoutMs: settings.callTimeoutMs,
    maxOutputChars: settings.maxOutputChars,
    execute: async (args, { signal, progress }) => {
      const result = await connection.callTool(from, args, { signal, onProgress: progress })
      return outputOf(result, from, settings.maxOutputChars)
    },
  })
}

/** Calls a tool for the application: the result is text, also if the server reports an error. */
export async function callOffered(
  connection: Connection,
  from: ServerTool,
  { args, signal }: { readonly args: JsonObject; readonly signal: AbortSignal | undefined },
): Promise<{ readonly text: string; readonly isError: boolean }> {
  const parsed = from.parseInput(args)
  if ('problem' in parsed) throw new Error(`The arguments for "${from.ownName}" are not valid: ${parsed.problem}`)
  const { callTimeoutMs, maxOutputChars } = connection.settings
  const deadline = new Deadline(signal)
  deadline.start(callTimeoutMs, () => new Error(`It did not end within ${callTimeoutMs} ms and was cancelled.`))
  const result = await connection.callTool(from, args, { signal: deadline.signal }).finally(() => deadline.clear())
  const { content, structuredContent, isError } = result
  const shown = toText(content)
  const text = shown === '' && structuredContent !== undefined ? JSON.stringify(structuredContent) : shown
  if (text.length > maxOutputChars)
    throw new Error(`"${from.ownName}" returned more than ${maxOutputChars} characters.`)
  return { text, isError: isError === true }
}

/** The model gets the complete schema of the server; arguments are checked by the part that is safe to run. */
function schemaOf({ inputSchema, parseInput }: ServerTool): Schema<JsonObject, JsonObject> {
  return {
    '~standard': {
      version: 1,
      vendor: 'hookloop',
      validate: (value) => {
        const parsed = parseInput(value as Json)
        return 'problem' in parsed ? { issues: [{ message: parsed.problem }] } : { value: value as JsonObject }
      },
      jsonSchema: { input: () => ({ ...inputSchema }), output: () => ({ ...inputSchema }) },
    },
  }
}

/** The result for the model. Throws if the server reports an error, or if the output does not fit its own schema. */
function outputOf(result: JsonObject, { parseOutput }: ServerTool, maxChars: number): Json | undefined {
  if (result['isError'] === true) {
    throw new Error(
      toText(result['content']).slice(0, MAX_ERROR_CHARS).toWellFormed() || 'It failed without a message.',
    )
  }
  const { structuredContent: structured } = result
  if (structured === undefined) {
    if (parseOutput !== undefined) throw new Error(`${INVALID_OUTPUT}: structured output is missing.`)
    return toText(result['content']) || undefined
  }
  const text = JSON.stringify(structured)
  if (parseOutput !== undefined && text.length <= MAX_CHECKED_CHARS) {
    const parsed = parseOutput(structured)
    if ('problem' in parsed) throw new Error(`${INVALID_OUTPUT}: ${parsed.problem}`)
  }
  return text.length <= maxChars ? structured : text // the text is shortened; copying so many values would take longer
}

const INVALID_OUTPUT = 'The tool ran, but its output does not fit the output schema of its server'
