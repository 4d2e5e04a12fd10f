import { hashJson, hashText, isJsonObject, toJson, type Json, type JsonObject } from '../../values/json.ts'
import { messageOf } from '../../errors.ts'
import { safeParser, type SafeParser } from './safe-schema.ts'
import type { ServerSettings } from './settings.ts'
import { cleanText } from './clean-text.ts'

/** A tool of a server that can be offered to a model. */
export type ServerTool = {
  /** Its name in the agent, and its name on the server. */
  readonly name: string
  readonly ownName: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly parseInput: SafeParser
  readonly parseOutput: SafeParser | undefined
  /** A hash of everything that a model or an approver sees of it. */
  readonly fingerprint: string
  /** As the server listed it, without its output schema. */
  readonly definition: JsonObject
}

const MAX_DESCRIPTION = 4_096
const MAX_SCHEMA_CHARS = 65_536
const MAX_OWN_NAME = 512
/** So many unusable tools are listed one by one; of the others, the number. */
const MAX_LISTED = 10

/** The tools to offer: selected by the patterns, usable, and at most `maxTools`. Notes report the others. */
export function chooseTools(
  listed: readonly Json[],
  settings: ServerSettings,
): { readonly tools: readonly ServerTool[]; readonly notes: readonly string[] } {
  const { name: server, patterns, maxTools } = settings
  const chosen = listed.filter((each) => patterns.some(({ test }) => test(ownNameOf(each))))
  const names = new ToolNames(server)
  const tools: ServerTool[] = []
  const unusable: string[] = []
  // Names that can be used as they are come first, so that no earlier tool can take them.
  const ordered = chosen.toSorted((a, b) => Number(names.fits(ownNameOf(b))) - Number(names.fits(ownNameOf(a))))
  let omitted = 0
  for (const each of ordered) {
    if (tools.length >= maxTools) {
      omitted++
      continue
    }
    try {
      tools.push(readTool(each, names))
    } catch (thrown) {
      unusable.push(`${JSON.stringify(cleanText(ownNameOf(each), 80))}: ${cleanText(messageOf(thrown), 200)}`)
    }
  }
  const idle = patterns.filter(({ text, test }) => text !== '*' && !listed.some((each) => test(ownNameOf(each))))
  return {
    tools,
    notes: [
      ...idle.map(({ text }) => `The pattern ${JSON.stringify(text)} selects no tool of the MCP server "${server}".`),
      ...unusable
        .slice(0, MAX_LISTED)
        .map((words) => `The MCP server "${server}" has a tool that cannot be used, ${words}.`),
      ...(unusable.length > MAX_LISTED
        ? [`The MCP server "${server}" has ${unusable.length - MAX_LISTED} more tools that cannot be used.`]
        : []),
      ...(omitted > 0
        ? [`The MCP server "${server}" has ${omitted} more tools than "maxTools" allows. Choose with "tools".`]
        : []),
    ],
  }
}

/** Whether a tool is listed as it was when it was offered. Of one name, there may be several. */
export function compareTool(
  { ownName, fingerprint }: ServerTool,
  listed: readonly Json[],
): 'same' | 'changed' | 'gone' {
  const found = listed.filter((each) => ownNameOf(each) === ownName)
  if (found.length === 0) return 'gone'
  return found.some((each) => fingerprintOf(each) === fingerprint) ? 'same' : 'changed'
}

function fingerprintOf(listed: Json): string {
  if (!isJsonObject(listed)) return ''
  const { name = null, title = null, description = null, inputSchema = null, outputSchema = null } = listed
  return hashJson({ name, title, description, inputSchema, outputSchema })
}

function ownNameOf(listed: Json): string {
  return isJsonObject(listed) && typeof listed['name'] === 'string' ? listed['name'] : ''
}

function readTool(listed: Json, names: ToolNames): ServerTool {
  const ownName = ownNameOf(listed)
  if (!isJsonObject(listed) || ownName === '' || ownName.length > MAX_OWN_NAME) throw new Error('it has no usable name')
  const inputSchema = schemaIn(listed, 'inputSchema')
  if (inputSchema?.['type'] !== 'object') throw new Error('its input schema does not describe an object')
  const outputSchema = schemaIn(listed, 'outputSchema')
  const parseInput = safeParser(inputSchema)
  const parseOutput = outputSchema && safeParser(outputSchema)
  const name = names.take(ownName)
  if (name === undefined) throw new Error('another tool of the server has the same name')
  const { outputSchema: _checked, ...definition } = listed
  return {
    name,
    ownName,
    description: describe(listed, ownName),
    inputSchema: cleanSchema(inputSchema) as JsonObject,
    parseInput,
    parseOutput,
    fingerprint: fingerprintOf(listed),
    definition,
  }
}

function schemaIn(listed: JsonObject, key: 'inputSchema' | 'outputSchema'): JsonObject | undefined {
  const schema = listed[key]
  if (schema === undefined || schema === null) return undefined
  const what = key === 'inputSchema' ? 'input' : 'output'
  if (!isJsonObject(schema)) throw new Error(`its ${what} schema is not an object`)
  if (JSON.stringify(schema).length > MAX_SCHEMA_CHARS) throw new Error(`its ${what} schema is too large`)
  return toJson(schema) as JsonObject
}

function describe(listed: JsonObject, ownName: string): string {
  const { description, title } = listed
  const given = typeof description === 'string' && description.trim() !== '' ? description : title
  const clean = typeof given === 'string' ? cleanText(given, MAX_DESCRIPTION) : ''
  return clean === '' ? `The tool "${cleanText(ownName, 80)}".` : clean
}

/** A schema whose titles and descriptions have no hidden text. */
function cleanSchema(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(cleanSchema)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const isText = (key === 'description' || key === 'title') && typeof inner === 'string'
      return [key, isText ? cleanText(inner, MAX_DESCRIPTION) : cleanSchema(inner)]
    }),
  )
}

const MAX_NAME = 128
const HASH = 8

/**
 * Names the tools of a server `mcp__<server>__<tool>`. A name with characters that models do not accept, or that is too long, is
 * replaced by a valid one: the same every time, and different from those of all other tools.
 */
export class ToolNames {
  readonly #prefix: string
  readonly #taken = new Set<string>()

  constructor(server: string) {
    this.#prefix = `mcp__${server}__`
  }

  /** Whether a name can be used as it is. */
  fits(name: string): boolean {
    return /^[A-Za-z0-9_.:-]+$/.test(name) && this.#prefix.length + name.length <= MAX_NAME
  }

  /** The name of a tool, or undefined if it is taken: the server lists it twice, or imitates another tool. */
  take(name: string): string | undefined {
    const full = `${this.#prefix}${this.fits(name) ? name : this.#mapped(name)}`
    if (this.#taken.has(full)) return undefined
    this.#taken.add(full)
    return full
  }

  #mapped(name: string): string {
    const maxChars = MAX_NAME - this.#prefix.length - HASH - 1
    return `${name.replace(/[^A-Za-z0-9_.:-]/g, '_').slice(0, maxChars)}_${hashText(name).slice(0, HASH)}`
  }
}
