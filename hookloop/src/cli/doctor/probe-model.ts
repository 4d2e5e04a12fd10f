import { ANSWER_TOOL } from '../../agent/output/answer-form.ts'
import type { LanguageModel, ModelRequest } from '../../state/inference.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { textOf } from '../../state/message.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'

/** A tool that a canary stands in for. */
export type CanaryTool = { readonly name: string; readonly inputSchema?: JsonObject | undefined }

/**
 * A model that is none. It calls every tool once, fails once, and then is done; and it answers what hooks ask it with
 * something that fits the schema they gave.
 */
export function canaryModel(tools: readonly CanaryTool[]): LanguageModel {
  const toolCalls = tools.map(({ name, inputSchema }) => ({ name, args: sampleOf(inputSchema ?? {}) }))
  let hasFailed = false
  return scriptedModel(
    (request): ScriptedTurn => {
      const asked = answerTo(request)
      if (asked !== undefined) return asked
      if (request.messages.at(-1)?.role !== 'tool') return toolCalls.length === 0 ? 'canary' : { toolCalls }
      if (hasFailed) return 'canary'
      hasFailed = true
      return { error: 'A canary of a failure: it is tried again.' }
    },
    { modelId: 'canary' },
  )
}

/** What a hook is answered, if it is one that asks: by the tool for answers, or in words where an agent looks into it. */
function answerTo({ tools, toolChoice, messages }: ModelRequest): ScriptedTurn | undefined {
  const tool = tools.find(({ name }) => name === ANSWER_TOOL)
  if (tool !== undefined && typeof toolChoice === 'object') {
    return { toolCalls: [{ name: ANSWER_TOOL, args: answerOf(tool.inputSchema) }] }
  }
  const said = messages.slice().flatMap(({ role, content }) => (role === 'user' ? [textOf(content)] : []))
  const wanted = said.flatMap((text) => /a JSON object that fits this schema: (\{.*\})$/m.exec(text)?.[1] ?? [])[0]
  return wanted === undefined ? undefined : JSON.stringify(answerOf(JSON.parse(wanted) as JsonObject))
}

/** What must be in an answer and nothing else, and yes wherever it is yes or no. */
function answerOf(schema: JsonObject): Json {
  const { required, properties } = schema
  if (!isJsonObject(properties)) return sampleOf(schema)
  const names = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []
  const entries = names.map((name) => [name, valueOf(properties[name] as JsonObject)] as const)
  return Object.fromEntries(entries)
}

function valueOf(schema: JsonObject): Json {
  return schema['type'] === 'boolean' ? true : sampleOf(schema)
}

/** A value that fits a schema, more or less: guards look at arguments. */
export function sampleOf(schema: JsonObject, depth = 0): Json {
  const { type, properties, items, enum: values, default: usual, const: only, anyOf, oneOf } = schema
  if (only !== undefined) return only
  if (usual !== undefined) return usual
  if (Array.isArray(values)) return (values[0] as Json | undefined) ?? null
  const [choice] = [anyOf, oneOf].flatMap((each) => (Array.isArray(each) ? (each as JsonObject[]) : []))
  if (choice !== undefined && depth < 5) return sampleOf(choice, depth + 1)
  switch (Array.isArray(type) ? type[0] : type) {
    case 'string':
      return 'canary'
    case 'number':
    case 'integer':
      return 1
    case 'boolean':
      return false
    case 'array':
      return items === undefined || depth > 4 ? [] : [sampleOf(items as JsonObject, depth + 1)]
    case 'null':
      return null
    default: {
      const inner = Object.entries((properties ?? {}) as { readonly [name: string]: JsonObject })
      return depth > 4 ? {} : Object.fromEntries(inner.map(([name, each]) => [name, sampleOf(each, depth + 1)]))
    }
  }
}
