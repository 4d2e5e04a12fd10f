import { setTimeout as delay } from 'node:timers/promises'
import type { FinishReason, LanguageModel, ModelCall, ModelReply, ModelRequest } from '../state/inference.ts'
import type { Json } from '../state/json.ts'
import type { Part, ToolCallPart } from '../state/message.ts'
import type { TokenUsage } from '../state/usage.ts'
import { AgentError } from '../errors.ts'

/** A call the scripted model makes. Ids are made up unless they matter. */
export type ScriptedCall = { readonly name: string; readonly args?: Json; readonly id?: string }

/** One thing the scripted model says. A plain text is an answer that ends the turn. */
export type ScriptedTurn =
  | string
  | {
      readonly text?: string
      readonly reasoning?: string
      readonly toolCalls?: readonly ScriptedCall[]
      /** The text in the pieces in which it is streamed. Without it, words. */
      readonly chunks?: readonly string[]
      readonly usage?: Partial<TokenUsage>
      readonly finishReason?: FinishReason
      /** Waits so long before each piece, and before the answer if it is not streamed. */
      readonly delayMs?: number
      /** Fails instead of answering, after the chunks if there are any. */
      readonly error?: string | Error
    }

export type Script = readonly (ScriptedTurn | ((request: ModelRequest) => ScriptedTurn | Promise<ScriptedTurn>))[]

export type ScriptedModel = LanguageModel & {
  /** Every request it was sent, in order. */
  readonly requests: readonly ModelRequest[]
}

/**
 * A model that says what it was told to, for tests, demos and work without a network. The script is one for all runs
 * of an agent, or a function that writes the next turn from the request, which any number of runs may share.
 */
export function scriptedModel(
  script: Script | ((request: ModelRequest) => ScriptedTurn | Promise<ScriptedTurn>),
  options: { readonly modelId?: string; readonly usage?: Partial<TokenUsage> } = {},
): ScriptedModel {
  const requests: ModelRequest[] = []
  const usage = { inputTokens: 10, outputTokens: 5, ...options.usage }
  let turns = 0
  return {
    provider: 'scripted',
    modelId: options.modelId ?? 'script',
    cost: 'reported',
    requests,
    async infer(request, call) {
      requests.push(request)
      const at = turns++
      const next = typeof script === 'function' ? script : script[at]
      if (next === undefined) {
        const length = (script as Script).length
        throw new AgentError(
          'SCRIPT_EXHAUSTED',
          `The script ends after turn ${length}; turn ${at + 1} was asked for.`,
          {
            value: at,
          },
        )
      }
      return speak(typeof next === 'function' ? await next(request) : next, { at, call, usage })
    },
  }
}

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
