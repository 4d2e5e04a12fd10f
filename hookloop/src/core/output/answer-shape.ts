import { parserOf, toJsonSchema, type Parsed } from '../../values/parse-schema.ts'
import { isJsonObject, parseExactly, toJson, type Json, type JsonObject } from '../../values/json.ts'
import type { Schema } from '../../values/schema.ts'
import { AgentError, messageOf, clause } from '../../errors.ts'

/** The schema of an answer, for the model and for parsing its answers. */
export type AnswerShape = {
  /** Always of type object, as tools and providers require. */
  readonly jsonSchema: JsonObject
  readonly parse: (value: Json) => Parsed | Promise<Parsed>
}

export function answerShape(schema: Schema | JsonObject): AnswerShape {
  const plain = shown(schema)
  const parse = parserOf(schema)
  if (plain['type'] === 'object') return { jsonSchema: closed(plain), parse }
  const { $defs, ...rest } = plain
  const value = { type: 'object', properties: { value: rest }, required: ['value'] }
  const jsonSchema = closed(moved({ ...value, ...($defs !== undefined && { $defs }) }) as JsonObject)
  return { jsonSchema, parse: (value) => parseEither(parse, value) }
}

/** Parses `{ value }`, or the complete object: a model may not have wrapped an answer that itself has a `value`. */
async function parseEither(parse: AnswerShape['parse'], value: Json): Promise<Parsed> {
  if (!isJsonObject(value) || !Object.hasOwn(value, 'value')) return parse(value)
  const inner = await parse(value['value']!)
  if ('value' in inner) return inner
  const whole = await parse(value)
  return 'value' in whole ? whole : inner
}

/** The same as a schema for a tool. */
export function answerSchema({ jsonSchema, parse }: AnswerShape): Schema<JsonObject> {
  const validate = async (value: unknown): Promise<{ value: unknown } | { issues: { message: string }[] }> => {
    const parsed = await parse(value as Json)
    return 'problem' in parsed ? { issues: [{ message: parsed.problem }] } : parsed
  }
  const shownAs = (): JsonObject => jsonSchema
  return { '~standard': { version: 1, vendor: 'hookloop', validate, jsonSchema: { input: shownAs, output: shownAs } } }
}

function shown(schema: Schema | JsonObject): JsonObject {
  try {
    const { $schema: _dialect, ...rest } = toJsonSchema(schema)
    return pointedAt(rest)
  } catch (error) {
    throw new AgentError(
      'AGENT_INVALID_OPTION',
      `"output" cannot be converted to JSON Schema: ${clause(messageOf(error))}.`,
      {
        value: schema,
      },
    )
  }
}

/** Resolves a schema that is only a reference to one of its definitions. */
function pointedAt(schema: JsonObject): JsonObject {
  const { $ref, $defs: definitions } = schema
  const name = typeof $ref === 'string' ? /^#\/\$defs\/([^/]+)$/.exec($ref)?.[1] : undefined
  const meant = name !== undefined && isJsonObject(definitions) ? definitions[name] : undefined
  return isJsonObject(meant) ? { ...meant, $defs: definitions! } : schema
}

/** The schema one level deeper: references to its root are adjusted, definitions stay where they are. */
function moved(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(moved)
  if (!isJsonObject(schema)) return schema
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => {
      const isPointer = key === '$ref' && typeof value === 'string' && /^#(?!\/\$defs\/)/.test(value)
      return [key, isPointer ? `#/properties/value${value.slice(1)}` : moved(value)]
    }),
  )
}

/** Keywords whose values are schemas: by name, in a list, or one. */
const named: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions'])
const listed: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'prefixItems'])
const single: ReadonlySet<string> = new Set(['items', 'additionalProperties'])

/** Keywords that may permit more properties than the object lists. */
const combining: readonly string[] = ['allOf', 'anyOf', 'oneOf', '$ref', 'if', 'dependentSchemas', 'patternProperties']

/**
 * Adds `additionalProperties: false` to objects, which providers with native schemas require. Combined schemas do not
 * change, because no value would fit them.
 */
function closed(schema: JsonObject): JsonObject {
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closedIn(key, value)]))
  const isPlain = combining.every((key) => schema[key] === undefined)
  const isOpen = schema['properties'] !== undefined && schema['additionalProperties'] === undefined
  return isPlain && isOpen ? { ...inner, additionalProperties: false } : inner
}

function closedIn(key: string, value: Json): Json {
  if (named.has(key) && isJsonObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, closedValue(each)]))
  }
  if (listed.has(key) && Array.isArray(value)) return value.map(closedValue)
  return single.has(key) ? closedValue(value) : value
}

function closedValue(value: Json): Json {
  return isJsonObject(value) ? closed(value) : value
}

/** The JSON in a text: all of it, a code fence, or from the first bracket to the last. */
export function readJson(text: string): Json | undefined {
  const [first, last] = [text.search(/[{[]/), Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'))]
  const bracketed = first !== -1 && last > first ? text.slice(first, last + 1) : undefined
  for (const candidate of [text, fenced(text), bracketed]) {
    if (candidate === undefined) continue
    try {
      return toJson(parseExactly(candidate)) // limits the depth and rejects `__proto__`
    } catch {
      // try the next candidate
    }
  }
  return undefined
}

/** The content of the first code fence. No RegExp: its time could be quadratic. */
function fenced(text: string): string | undefined {
  const open = text.indexOf('```')
  const line = open === -1 ? -1 : text.indexOf('\n', open)
  const close = line === -1 ? -1 : text.indexOf('```', line)
  const isJson = close !== -1 && ['', 'json'].includes(text.slice(open + 3, line).trim())
  return isJson ? text.slice(line + 1, close) : undefined
}
