import { ANSWER_TOOL } from '../../agent/output/answer-form.ts'
import type { LanguageModel, ModelRequest } from '../../state/inference.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { textOf } from '../../state/message.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'

/** A tool that the probe model calls. */
export type ProbeTool = { readonly name: string; readonly inputSchema?: JsonObject | undefined }

/**
 * A scripted model that calls every tool once, fails once, and then completes. It answers the calls of hooks with a value that
 * fits their schema.
 */
export function probeModel(tools: readonly ProbeTool[]): LanguageModel {
  const toolCalls = tools.map(({ name, inputSchema }) => ({ name, args: sampleOf(inputSchema ?? {}) }))
  let hasFailed = false
  return scriptedModel(
    (request): ScriptedTurn => {
      const answer = answerTo(request)
      if (answer !== undefined) return answer
      if (request.messages.at(-1)?.role !== 'tool') return toolCalls.length === 0 ? 'probe' : { toolCalls }
      if (hasFailed) return 'probe'
      hasFailed = true
      return { error: 'A simulated failure of the probe model.' }
    },
    { modelId: 'probe' },
  )
}

/** The answer to a hook that calls the model: with the answer tool, or as text where an agent inspects. */
function answerTo({ tools, toolChoice, messages }: ModelRequest): ScriptedTurn | undefined {
  const tool = tools.find(({ name }) => name === ANSWER_TOOL)
  if (tool !== undefined && typeof toolChoice === 'object') {
    return { toolCalls: [{ name: ANSWER_TOOL, args: answerOf(tool.inputSchema) }] }
  }
  const prompts = messages.flatMap(({ role, content }) => (role === 'user' ? [textOf(content)] : []))
  const schema = prompts.flatMap((text) => /a JSON object that fits this schema: (\{.*\})$/m.exec(text)?.[1] ?? [])[0]
  return schema === undefined ? undefined : JSON.stringify(answerOf(JSON.parse(schema) as JsonObject))
}

/** The required properties only, and true for every boolean. */
function answerOf(schema: JsonObject): Json {
  const { required, properties } = schema
  if (!isJsonObject(properties)) return sampleOf(schema)
  const names = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []
  return Object.fromEntries(
    names.map((name) => {
      const property = properties[name] as JsonObject
      return [name, property['type'] === 'boolean' ? true : sampleOf(property)] as const
    }),
  )
}

/** A value that roughly fits a schema: guards look at arguments. */
function sampleOf(schema: JsonObject, depth = 0): Json {
  const { type, properties, items, enum: values, default: usual, const: only, anyOf, oneOf } = schema
  if (only !== undefined) return only
  if (usual !== undefined) return usual
  if (Array.isArray(values)) return (values[0] as Json | undefined) ?? null
  const [choice] = [anyOf, oneOf].flatMap((each) => (Array.isArray(each) ? (each as JsonObject[]) : []))
  if (choice !== undefined && depth < 5) return sampleOf(choice, depth + 1)
  switch (Array.isArray(type) ? type[0] : type) {
    case 'string':
      return 'probe'
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
