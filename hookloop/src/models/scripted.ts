import { checkOptions, optionNames } from '../values/check-options.ts'
import { setTimeout as delay } from 'node:timers/promises'
import type { FinishReason, LanguageModel, ModelCall, ModelReply, ModelRequest } from '../core/state/inference.ts'
import type { Json } from '../values/json.ts'
import type { Part, ToolCallPart } from '../core/state/message.ts'
import { spentTokens, type TokenUsage } from '../core/state/usage.ts'
import { AgentError } from '../errors.ts'

/** A tool call of a scripted model. The id is generated if omitted. */
export type ScriptedCall = { readonly name: string; readonly args?: Json; readonly id?: string }

/** One reply of a scripted model. A string is a final answer. */
export type ScriptedTurn =
  | string
  | {
      readonly text?: string
      readonly reasoning?: string
      readonly toolCalls?: readonly ScriptedCall[]
      /** The text in the pieces in which it is streamed. Default: word by word. */
      readonly chunks?: readonly string[]
      readonly usage?: Partial<TokenUsage>
      readonly finishReason?: FinishReason
      /** The delay before each piece, or before the reply if it is not streamed. Default 0. */
      readonly delayMs?: number
      /** Throws instead of replying, after the chunks if there are any. */
      readonly error?: string | Error
    }

/** The replies of a scripted model in order; a function computes a reply from the request. */
export type Script = readonly (ScriptedTurn | ((request: ModelRequest) => ScriptedTurn | Promise<ScriptedTurn>))[]

/** A model that replies from a script, and records the requests it received. */
export type ScriptedModel = LanguageModel & {
  /** Every request it received, in order. */
  readonly requests: readonly ModelRequest[]
}

/**
 * Creates a model that replies from a script, for tests and demos without a network. Each new conversation starts at the
 * first turn of a list; a run that continues one (`session`, `from`, `resume`) and subagents take the next turn. A function
 * computes each reply from the request.
 *
 * @example
 * const model = scriptedModel([{ toolCalls: [{ name: 'add', args: { a: 1, b: 2 } }] }, 'The sum is 3.'])
 */
export function scriptedModel(
  script: Script | ((request: ModelRequest) => ScriptedTurn | Promise<ScriptedTurn>),
  options: { readonly modelId?: string; readonly usage?: Partial<TokenUsage> } = {},
): ScriptedModel {
  checkOptions('scriptedModel', options, ['modelId', 'usage'])
  if (options.usage !== undefined) spentTokens(options.usage, 'scriptedModel: usage')
  if (Array.isArray(script)) for (const turn of script as Script) if (typeof turn !== 'function') checkTurn(turn)
  const requests: ModelRequest[] = []
  const usage = { inputTokens: 10, outputTokens: 5, ...options.usage }
  const positions = new Map<string | undefined, number>()
  return {
    provider: 'scripted',
    modelId: options.modelId ?? 'script',
    cost: 'reported',
    requests,
    async infer(request, call) {
      requests.push(request)
      const at = takeTurn(positions, call.conversation)
      const next = typeof script === 'function' ? script : script[at]
      if (next === undefined) {
        const length = (script as Script).length
        const message = `The script has ${length} turn${length === 1 ? '' : 's'}, and this conversation requested turn ${at + 1}.`
        throw new AgentError('SCRIPT_EXHAUSTED', `${message} Add turns, or use a function as the script.`, {
          value: at,
        })
      }
      if (typeof next !== 'function') return speak(next, { at, call, usage })
      const turn = await next(request)
      checkTurn(turn)
      return speak(turn, { at, call, usage })
    },
  }
}

const MAX_CONVERSATIONS = 10_000

/** Returns the position of a conversation in the script, and advances it. The least recently used position is dropped. */
function takeTurn(positions: Map<string | undefined, number>, conversation: string | undefined): number {
  const at = positions.get(conversation) ?? 0
  positions.delete(conversation)
  positions.set(conversation, at + 1)
  if (positions.size > MAX_CONVERSATIONS) positions.delete(positions.keys().next().value)
  return at
}

/** With an unknown property the reply would not be what the test expects. */
function checkTurn(turn: ScriptedTurn): void {
  if (typeof turn === 'string') return
  checkOptions('a turn of scriptedModel', turn, turnNames)
  const { toolCalls, usage } = turn
  for (const each of toolCalls ?? []) checkOptions('a tool call of scriptedModel', each, ['name', 'args', 'id'])
  if (usage !== undefined) spentTokens(usage, 'usage of scriptedModel')
}

const turnNames = optionNames<Exclude<ScriptedTurn, string>>({
  text: true,
  reasoning: true,
  toolCalls: true,
  chunks: true,
  usage: true,
  finishReason: true,
  delayMs: true,
  error: true,
})

async function speak(
  turn: ScriptedTurn,
  { at, call, usage }: { at: number; call: ModelCall; usage: Partial<TokenUsage> },
): Promise<ModelReply> {
  if (typeof turn === 'string') return speak({ text: turn }, { at, call, usage })
  const { text = turn.chunks?.join('') ?? '', reasoning, toolCalls = [], delayMs = 0, error } = turn
  const calls = toolCalls.map(({ name, args = {}, id }, i): ToolCallPart => {
    return { type: 'tool-call', toolCallId: id ?? `call-${at + 1}-${i + 1}`, toolName: name, input: args }
  })
  if (call.onDelta !== undefined) {
    if (reasoning !== undefined) call.onDelta({ type: 'reasoning', delta: reasoning })
    const pieces = turn.chunks ?? text.match(/\S+\s*|\s+/g) ?? []
    for (const delta of pieces) {
      await wait(delayMs, call.signal)
      call.onDelta({ type: 'text', delta })
    }
    if (pieces.length === 0) await wait(delayMs, call.signal)
    for (const { toolCallId, toolName, input } of calls) {
      call.onDelta({ type: 'toolCallDelta', callId: toolCallId, toolName, delta: JSON.stringify(input) })
    }
  } else {
    await wait(delayMs, call.signal)
  }
  if (error !== undefined) throw typeof error === 'string' ? new Error(error) : error
  const content: Part[] = []
  if (reasoning !== undefined) content.push({ type: 'reasoning', text: reasoning })
  if (text !== '') content.push({ type: 'text', text })
  content.push(...calls)
  const finishReason = turn.finishReason ?? (toolCalls.length > 0 ? 'tool-calls' : 'stop')
  return { content, finishReason, usage: { ...usage, ...turn.usage } }
}

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await delay(ms, undefined, { signal })
  signal.throwIfAborted()
}
