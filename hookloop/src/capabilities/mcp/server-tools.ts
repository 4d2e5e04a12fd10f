import { hashJson, isJsonObject, toJson, type Json, type JsonObject } from '../../state/json.ts'
import { messageOf } from '../../errors.ts'
import type { Listed } from './pages.ts'
import { plainParser, type PlainParser } from './plain-schema.ts'
import type { ServerSettings } from './settings.ts'
import { ToolNames } from './tool-names.ts'
import { cleaned } from './words.ts'

/** A tool of a server that may be offered to a model. */
export type ServerTool = {
  /** What it is called here, and by its server. */
  readonly name: string
  readonly ownName: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly parseInput: PlainParser
  readonly parseOutput: PlainParser | undefined
  /** What changes when the server changes anything about it. */
  readonly fingerprint: string
  /** As the server gave it, without its output schema. */
  readonly definition: JsonObject
}

export type ToolChoice = { readonly tools: readonly ServerTool[]; readonly notes: readonly string[] }

const MAX_DESCRIPTION = 4_096
const MAX_SCHEMA_CHARS = 65_536
const MAX_OWN_NAME = 512
/** Refusals that are told one by one; of more, the number. */
const MAX_TOLD = 10

/** The tools that are offered: those that were chosen, can be used, and are not too many. The others are told. */
export function chooseTools(listed: readonly Json[], settings: ServerSettings): ToolChoice {
  const { name: server, patterns, maxTools } = settings
  const chosen = listed.filter((each) => patterns.some(({ test }) => test(ownNameOf(each))))
  const names = new ToolNames(server)
  const tools: ServerTool[] = []
  const refused: string[] = []
  // Names that can stay as they are come first: no other tool can take them by being listed earlier.
  const inTurn = chosen.toSorted((a, b) => Number(names.fits(ownNameOf(b))) - Number(names.fits(ownNameOf(a))))
  let beyond = 0
  for (const each of inTurn) {
    if (tools.length >= maxTools) {
      beyond++
      continue
    }
    try {
      tools.push(readTool(each, names))
    } catch (thrown) {
      refused.push(`${JSON.stringify(cleaned(ownNameOf(each), 80))}: ${cleaned(messageOf(thrown), 200)}`)
    }
  }
  const idle = patterns.filter(({ text, test }) => text !== '*' && !listed.some((each) => test(ownNameOf(each))))
  return {
    tools,
    notes: [
      ...idle.map(({ text }) => `The pattern ${JSON.stringify(text)} selects no tool of the MCP server "${server}".`),
      ...refused.slice(0, MAX_TOLD).map((words) => `The MCP server "${server}" has a tool that is left out, ${words}.`),
      ...(refused.length > MAX_TOLD
        ? [`The MCP server "${server}" has ${refused.length - MAX_TOLD} more tools that cannot be used.`]
        : []),
      ...(beyond > 0
        ? [`The MCP server "${server}" has ${beyond} more tools than "maxTools" allows. Choose with "tools".`]
        : []),
    ],
  }
}

/** The tools of a list: their names, and what each is recognised by. */
export function fingerprintsOf({ items, isWhole }: Listed): {
  readonly names: ReadonlySet<string>
  readonly fingerprints: ReadonlySet<string>
  readonly isWhole: boolean
} {
  return { names: new Set(items.map(ownNameOf)), fingerprints: new Set(items.map(fingerprintOf)), isWhole }
}

/** What changes when a server changes anything about a tool that a model or a person has been shown. */
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
  const parseInput = plainParser(inputSchema)
  const parseOutput = outputSchema && plainParser(outputSchema)
  const name = names.take(ownName)
  if (name === undefined) throw new Error('its name is taken by another tool of the server')
  const { outputSchema: _checkedHere, ...definition } = listed
  return {
    name,
    ownName,
    description: describe(listed, ownName),
    inputSchema: cleanedSchema(inputSchema) as JsonObject,
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
  const words = typeof given === 'string' ? cleaned(given, MAX_DESCRIPTION) : ''
  return words === '' ? `The tool "${cleaned(ownName, 80)}".` : words
}

/** A schema with its words as a model may read them: hidden text has no place in them either. */
function cleanedSchema(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(cleanedSchema)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const isWords = (key === 'description' || key === 'title') && typeof inner === 'string'
      return [key, isWords ? cleaned(inner, MAX_DESCRIPTION) : cleanedSchema(inner)]
    }),
  )
}
