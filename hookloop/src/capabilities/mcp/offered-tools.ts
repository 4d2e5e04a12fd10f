import type { CallToolResult } from '@modelcontextprotocol/client'
import { tool, type Tool } from '../../agent/tool.ts'
import { toSizedJson, type Json, type JsonObject } from '../../state/json.ts'
import type { Schema } from '../../state/schema.ts'
import { Deadline } from '../../system/timeout.ts'
import type { Connection } from './connection.ts'
import { toText } from './content.ts'
import type { ServerTool } from './server-tools.ts'

const MAX_ERROR_CHARS = 8_192
/** Beyond that, checking could take seconds. */
const MAX_CHECKED_CHARS = 1_048_576

/** A tool of a server as a tool of an agent: the same hooks see it, and what it does wrong is a failed call. */
export function offeredTool(connection: Connection, from: ServerTool): Tool {
  const { settings } = connection
  return tool({
    name: from.name,
    description: from.description,
    input: schemaOf(from),
    ask: settings.asks(from.ownName),
    concurrent: settings.runsBeside(from.ownName),
    timeoutMs: settings.callTimeoutMs,
    maxOutputChars: settings.maxOutputChars,
    execute: async (args, { signal, progress }) => {
      const result = await connection.callTool(from, args, { signal, onProgress: progress })
      return outputOf(result, from)
    },
  })
}

/** Calls it for whoever is no model: what it says is words, also where it calls that an error. */
export async function callOffered(
  connection: Connection,
  from: ServerTool,
  { args, signal }: { readonly args: JsonObject; readonly signal: AbortSignal | undefined },
): Promise<{ readonly text: string; readonly isError: boolean }> {
  const parsed = from.parseInput(args)
  if ('problem' in parsed) throw new Error(`"${from.ownName}" does not take these arguments: ${parsed.problem}`)
  const { callTimeoutMs, maxOutputChars } = connection.settings
  const deadline = new Deadline(signal)
  deadline.start(callTimeoutMs, () => new Error(`It did not end within ${callTimeoutMs} ms and was told to stop.`))
  const result = await connection.callTool(from, args, { signal: deadline.signal }).finally(() => deadline.clear())
  const { content, structuredContent, isError = false } = result
  const said = toText(content)
  const text = said === '' && structuredContent !== undefined ? JSON.stringify(structuredContent) : said
  if (text.length > maxOutputChars) throw new Error(`"${from.ownName}" said more than ${maxOutputChars} characters.`)
  return { text, isError }
}

/** A model is shown the whole schema of the server; arguments are checked by the part of it that is safe to run. */
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

/** What the model reads of a result. Throws what the server calls an error, and what is not what it promised. */
function outputOf(result: CallToolResult, { parseOutput }: ServerTool): Json | undefined {
  if (result.isError === true) {
    throw new Error(toText(result.content).slice(0, MAX_ERROR_CHARS).toWellFormed() || 'It failed without a word.')
  }
  const { structuredContent: structured } = result
  if (structured === undefined) {
    if (parseOutput !== undefined) throw new Error(`${BROKEN}: it promises structured output and sent none.`)
    return toText(result.content) || undefined
  }
  const { json, size } = toSizedJson(structured)
  if (parseOutput !== undefined && size <= MAX_CHECKED_CHARS) {
    const parsed = parseOutput(json)
    if ('problem' in parsed) throw new Error(`${BROKEN}: ${parsed.problem}`)
  }
  return json
}

const BROKEN = 'The tool ran, but its output does not fit the schema that its server gave for it'
