import type { InferenceRequest, LanguageModel, RequestChange } from '../state/inference.ts'
import { sameJson, type JsonObject } from '../../values/json.ts'

/** How a model is made to follow a schema: by its provider, by a tool that takes the answer, or by instructions. */
export type AnswerForm = 'native' | 'tool' | 'text'

export const ANSWER_TOOL = 'final_answer'

/** The best form that a model supports, depending on whether there are other tools. */
export function bestForm({ structuredOutput = 'tool' }: LanguageModel, hasTools: boolean): AnswerForm {
  if (structuredOutput === 'native-alone') return hasTools ? 'tool' : 'native'
  return structuredOutput
}

/** The schema of the answer, and its name. */
export type Wanted = {
  readonly jsonSchema: JsonObject
  readonly name: string
  readonly description: string | undefined
}

const byTool = `When you are done, call the tool "${ANSWER_TOOL}" with your answer. Do not answer with text.`
const byText = 'Give your final answer as JSON and nothing else. It must fit this JSON Schema:'

/**
 * Changes a request to ask for a form, whichever form it asked for before: another model may support another form. With
 * `insists`, the model must call the tool.
 */
export function askInForm(
  request: InferenceRequest,
  form: AnswerForm,
  { wanted, insists }: { readonly wanted: Wanted; readonly insists: boolean },
): RequestChange {
  const { jsonSchema, name, description } = wanted
  const words = form === 'native' ? '' : form === 'tool' ? byTool : textWords(jsonSchema)
  const bare = withoutWords(request.system, [byTool, textWords(jsonSchema)])
  const others = otherTools(request)
  const format = { type: 'json', schema: jsonSchema, name, ...(description !== undefined && { description }) }
  return {
    system: [bare, words].filter((text) => text !== '').join('\n\n'),
    tools: form === 'tool' ? [...others, ANSWER_TOOL] : others,
    ...(form === 'native' && { responseFormat: format }),
    ...(form !== 'native' && request.responseFormat !== undefined && { responseFormat: { type: 'text' } }),
    ...(form === 'tool' && insists && { toolChoice: { tool: ANSWER_TOOL } }),
    ...(form !== 'tool' && isForced(request) && { toolChoice: 'auto' as const }),
  }
}

/** The form that a request asks for, if it does. */
export function formOf({ system, responseFormat }: InferenceRequest, { jsonSchema }: Wanted): AnswerForm | undefined {
  if (system.endsWith(byTool)) return 'tool'
  if (system.endsWith(textWords(jsonSchema))) return 'text'
  return responseFormat !== undefined && sameJson(responseFormat['schema'] ?? null, jsonSchema) ? 'native' : undefined
}

export function otherTools({ tools }: InferenceRequest): readonly string[] {
  return tools.filter((name) => name !== ANSWER_TOOL)
}

function textWords(jsonSchema: JsonObject): string {
  return `${byText}\n${JSON.stringify(jsonSchema)}`
}

function withoutWords(system: string, words: readonly string[]): string {
  const found = words.find((each) => system.endsWith(each))
  return found === undefined ? system : system.slice(0, -found.length).replace(/\n\n$/, '')
}

function isForced({ toolChoice }: InferenceRequest): boolean {
  return typeof toolChoice === 'object' && toolChoice.tool === ANSWER_TOOL
}
