import { parserOf, toJsonSchema, type Parsed } from '../../agent/parse-schema.ts'
import { isJsonObject, type Json, type JsonObject } from '../../data/json.ts'
import type { Schema } from '../../data/schema.ts'
import { AgentError, messageOf } from '../../errors.ts'

/** The schema of an answer, as a model is shown it and as its answers are read by it. */
export type AnswerShape = {
  /** Always of an object: neither tools nor providers take anything else. */
  readonly jsonSchema: JsonObject
  readonly parse: (value: Json) => Parsed | Promise<Parsed>
}

export function answerShape(schema: Schema | JsonObject): AnswerShape {
  const plain = shown(schema)
  const parse = parserOf(schema)
  if (plain['type'] === 'object') return { jsonSchema: closed(plain), parse }
  const jsonSchema = closed({ type: 'object', properties: { value: plain }, required: ['value'] })
  return { jsonSchema, parse: (value) => parse(isJsonObject(value) && 'value' in value ? value['value']! : value) }
}

function shown(schema: Schema | JsonObject): JsonObject {
  try {
    const { $schema: _dialect, ...rest } = toJsonSchema(schema)
    return rest
  } catch (error) {
    throw new AgentError('AGENT_INVALID_OPTION', `"output" cannot be shown to a model: ${messageOf(error)}.`, {
      value: schema,
    })
  }
}

/** Objects without anything unasked for: what providers that hold a model to a schema insist on. */
function closed(schema: JsonObject): JsonObject {
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closedValue(value)]))
  const isObject = schema['type'] === 'object' && schema['properties'] !== undefined
  return isObject && schema['additionalProperties'] === undefined ? { ...inner, additionalProperties: false } : inner
}

function closedValue(value: Json): Json {
  if (Array.isArray(value)) return value.map(closedValue)
  return isJsonObject(value) ? closed(value) : value
}

/** The JSON in a text: all of it, what is in a code fence, or from the first bracket to the last. */
export function readJson(text: string): Json | undefined {
  const fence = /```(?:json)?\s*\n([\s\S]*?)\n\s*```/.exec(text)?.[1]
  const [first, last] = [text.search(/[{[]/), Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'))]
  const bracketed = first !== -1 && last > first ? text.slice(first, last + 1) : undefined
  for (const candidate of [text, fence, bracketed]) {
    if (candidate === undefined) continue
    try {
      return JSON.parse(candidate) as Json
    } catch {
      // the next one may be better
    }
  }
  return undefined
}
