import { checkedSettings } from '../state/model-settings.ts'
import type {
  InferenceRequest,
  InferenceResponse,
  LanguageModel,
  ToModel,
  ToolDescription,
} from '../state/inference.ts'
import type { JsonObject } from '../../values/json.ts'
import { textMessage, toMessage, type Message, type Part } from '../state/message.ts'
import type { Schema } from '../../values/schema.ts'
import { addTokens } from '../state/usage.ts'
import { AgentError, clause } from '../../errors.ts'
import type { Inferred, InferOptions } from '../hooks/infer.ts'
import { ANSWER_TOOL, askInForm, bestForm, type AnswerForm } from '../output/answer-form.ts'
import { answerShape, readJson, type AnswerShape } from '../output/answer-shape.ts'
import { checkOptions } from '../../values/check-options.ts'

/** One model call: the request that guards see, and the tools that the model gets. */
export type InferCall = { readonly request: InferenceRequest; readonly tools: readonly ToolDescription[] }

export type Inferring = {
  readonly toModel: ToModel
  /** The default model. */
  readonly model: LanguageModel
  /** Sends a call; `again` when it asks the model to correct its previous answer. */
  readonly send: (call: InferCall, again: boolean) => Promise<InferenceResponse>
}

/**
 * Calls a model for a hook. If the answer does not fit the schema, the model gets one more chance, with a description of
 * the problem; after that OUTPUT_INVALID is thrown.
 */
export async function inferFor(
  options: InferOptions,
  { toModel, model, send }: Inferring,
): Promise<Inferred & { readonly output?: unknown }> {
  checkOptions('infer', options, names)
  const request = requestFor(options, options.model === undefined ? model : toModel(options.model))
  if (options.output === undefined) return inferred(await send({ request, tools: [] }, false))
  const { call, form, shape } = typedCall(request, options.output)
  const first = await send(call, false)
  const read = await readAnswer(first, form, shape)
  if ('value' in read) return { ...inferred(first), output: read.value }
  const second = await send(withProblem(call, first, read.problem), true)
  const usage = addTokens(first.usage, second.usage)
  const corrected = await readAnswer(second, form, shape)
  if ('value' in corrected) return { ...inferred({ ...second, usage }), output: corrected.value }
  throw new AgentError(
    'OUTPUT_INVALID',
    `No answer of the model fits the schema. The last problem: ${clause(corrected.problem)}.`,
    {
      value: { text: second.text, problem: corrected.problem },
    },
  )
}

const names: readonly string[] = ['model', 'system', 'messages', 'prompt', 'output', 'settings']

function requestFor(options: InferOptions, model: LanguageModel): InferenceRequest {
  const { system = '', settings, prompt, messages = [] } = options
  const said = [...messages].map((each) => toMessage(each, 'message'))
  if (prompt !== undefined) said.push(toMessage(prompt, 'prompt'))
  if (said.length === 0) {
    throw new AgentError('AGENT_INVALID_OPTION', 'infer: "prompt" or "messages" is required.', { value: options })
  }
  return Object.freeze({
    model,
    system,
    messages: Object.freeze(said),
    tools: Object.freeze([]),
    ...(settings !== undefined && { settings: checkedSettings('infer', settings) }),
  })
}

function inferred({ text, usage, finishReason, modelId }: InferenceResponse): Inferred {
  return Object.freeze({ text, usage, finishReason, ...(modelId !== undefined && { modelId }) })
}

type Typed = { readonly call: InferCall; readonly form: AnswerForm; readonly shape: AnswerShape }

function typedCall(request: InferenceRequest, output: Schema | JsonObject): Typed {
  const shape = answerShape(output)
  const form = bestForm(request.model, false)
  const wanted = { jsonSchema: shape.jsonSchema, name: 'answer', description: undefined }
  const { messages: _messages, model: _model, ...change } = askInForm(request, form, { wanted, insists: true })
  const description = 'Takes your answer. Call it once.'
  const tool = { name: ANSWER_TOOL, description, inputSchema: shape.jsonSchema }
  const call = { request: Object.freeze({ ...request, ...change }), tools: form === 'tool' ? [tool] : [] }
  return { call, form, shape }
}

type Read = { readonly value: unknown } | { readonly problem: string }

/** A model may have written what it should have given to the tool. */
async function readAnswer({ content, text }: InferenceResponse, form: AnswerForm, shape: AnswerShape): Promise<Read> {
  const call = form === 'tool' ? answerCall(content) : undefined
  const json = call === undefined ? readJson(text) : call.input
  if (json === undefined) return { problem: text === '' ? 'it is empty' : 'it is not JSON' }
  return shape.parse(json)
}

function answerCall(content: readonly Part[]) {
  return content.find((part) => part.type === 'tool-call' && part.toolName === ANSWER_TOOL) as
    | Extract<Part, { type: 'tool-call' }>
    | undefined
}

function withProblem({ request, tools }: InferCall, { content }: InferenceResponse, problem: string): InferCall {
  const words = `Your answer does not fit: ${clause(problem)}. Give it again, in the form asked for.`
  const calls = content.filter((part) => part.type === 'tool-call')
  const results = calls.map(({ toolCallId, toolName }): Part => {
    return Object.freeze({ type: 'tool-result', toolCallId, toolName, output: words, isError: true })
  })
  const reply: Message =
    results.length > 0 ? Object.freeze({ role: 'tool', content: Object.freeze(results) }) : textMessage('user', words)
  const said = content.length === 0 ? [] : [Object.freeze({ role: 'assistant' as const, content })]
  return {
    request: Object.freeze({ ...request, messages: Object.freeze([...request.messages, ...said, reply]) }),
    tools,
  }
}
