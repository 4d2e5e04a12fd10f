import type { InferenceDelta, InferenceRequest, InferenceResponse } from '../../state/inference.ts'
import type { Part } from '../../state/message.ts'
import { addTokens, noTokens, type TokenUsage } from '../../state/usage.ts'
import { AnswerWindow } from './answer-window.ts'
import type { RunContext } from '../context/run-context.ts'

/** Where one attempt writes its answer. `settled` is awaited when it has ended: hooks that check it are part of the call. */
export type OpenAnswer = {
  readonly write: (delta: InferenceDelta) => void
  readonly settled: () => Promise<void> | undefined
}

/**
 * Emits an answer while it is written (`after`), in pieces that hooks on `afterInference` have passed (`window`), or only
 * when they have passed the complete answer (`hold`). The strictest policy of these hooks applies. Streaming never changes
 * the answer itself, so a replay, which streams nothing, ends with the same state.
 */
export class AnswerStream {
  readonly #run: RunContext
  readonly #step: number
  readonly #request: InferenceRequest
  readonly #policy: 'hold' | 'window' | 'after'
  #attempts = 0
  /** Whether anything of this attempt was emitted. */
  #shown = false
  #window: AnswerWindow | undefined
  /** What hooks have spent on checking the answer while it was written. */
  spent = noTokens

  constructor(run: RunContext, step: number, request: InferenceRequest) {
    this.#run = run
    this.#step = step
    this.#request = request
    const { transforms, guards } = run.parts.stack.plan('afterInference')
    const policies = [...transforms, ...guards].filter((hook) => !hook.shadow).map((hook) => hook.stream ?? 'hold')
    this.#policy = policies.includes('hold') ? 'hold' : policies.includes('window') ? 'window' : 'after'
  }

  /** Opens the stream for an attempt. What an earlier attempt still writes is not emitted. */
  open(): OpenAnswer {
    const attempt = ++this.#attempts
    const isCurrent = (): boolean => attempt === this.#attempts
    const show = (delta: InferenceDelta): void => {
      if (!isCurrent()) return
      this.#shown = true
      this.#emit(delta)
    }
    const settled = (): undefined => undefined
    if (this.#policy === 'after') return { write: show, settled }
    if (this.#policy === 'hold') return { write: () => undefined, settled }
    const spend = (usage: TokenUsage): void => void (this.spent = addTokens(this.spent, usage))
    const window = new AnswerWindow(this.#run, { request: this.#request, show, spend })
    this.#window = window
    return { write: (delta) => (isCurrent() ? window.write(delta) : undefined), settled: () => window.settled() }
  }

  /** The usage of a call, with what hooks have spent on checking its answer. */
  withSpent(usage: TokenUsage): TokenUsage {
    return this.spent === noTokens ? usage : addTokens(usage, this.spent)
  }

  retract(why: string): void {
    if (this.#shown) this.#run.effects.emit?.({ type: 'retracted', step: this.#step, at: this.#run.now, why })
    this.#shown = false
    this.#window = undefined
    this.#attempts++ // what is still being written is not emitted
  }

  finish(written: InferenceResponse, passed: InferenceResponse): void {
    this.#attempts++ // later writes are ignored
    const kept = this.#policy === 'window' ? this.#window?.isBeginningOf(passed) === true : written === passed
    if (!kept) this.retract('a hook changed or withheld the answer')
    if (this.#policy === 'after' && this.#shown) return
    let skip = kept ? (this.#window?.released ?? 0) : 0
    for (const part of passed.content) {
      const delta = toDelta(part)
      if (delta === undefined) continue
      const seen = delta.type === 'toolCallDelta' ? 0 : Math.min(skip, delta.delta.length)
      skip -= seen
      if (seen < delta.delta.length) this.#emit({ ...delta, delta: delta.delta.slice(seen) })
    }
  }

  #emit(delta: InferenceDelta): void {
    const { effects } = this.#run
    effects.emit?.({ ...delta, step: this.#step, at: effects.clockTime() })
  }
}

/** A complete part as one delta. */
function toDelta(part: Part): InferenceDelta | undefined {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return { type: part.type, delta: part.text }
    case 'tool-call':
      return {
        type: 'toolCallDelta',
        callId: part.toolCallId,
        toolName: part.toolName,
        delta: JSON.stringify(part.input),
      }
    case 'file':
    case 'tool-result':
      return undefined
    default:
      return part satisfies never
  }
}
