import { toResponse, type InferenceDelta, type InferenceRequest, type InferenceResponse } from '../state/inference.ts'
import type { Part } from '../state/message.ts'
import { addTokens, noTokens, type TokenUsage } from '../state/usage.ts'
import { deriveHost } from '../hooks/hook-host.ts'
import { Invocation } from '../hooks/invocation.ts'
import { runGuards, runTransforms } from '../hooks/run-hooks.ts'
import type { RunContext } from '../context/run-context.ts'

/** How far hooks must have seen beyond a piece before it is emitted: what they look for may span two pieces. */
const OVERLAP = 200
const STEP = 100

/**
 * Emits an answer while it is written (`after`), in pieces that hooks on `afterInference` have passed (`window`), or only
 * when they have passed the complete answer (`hold`). The strictest policy of these hooks applies. Streaming never changes
 * the answer itself, so a replay, which streams nothing, ends with the same state.
 */
export class AnswerStream {
  readonly run: RunContext
  readonly request: InferenceRequest
  readonly policy: 'hold' | 'window' | 'after'
  readonly #step: number
  /** The answer that is being written. What an earlier attempt still writes is not emitted. */
  #current: WrittenAnswer | undefined
  /** What hooks have spent on checking the answer while it was written. */
  spent = noTokens

  constructor(run: RunContext, step: number, request: InferenceRequest) {
    this.run = run
    this.#step = step
    this.request = request
    const { transforms, guards } = run.parts.plans.of('afterInference')
    const policies = [...transforms, ...guards].filter((hook) => !hook.shadow).map((hook) => hook.stream ?? 'hold')
    this.policy = policies.includes('hold') ? 'hold' : policies.includes('window') ? 'window' : 'after'
  }

  /** Where the next attempt writes its answer. */
  open(): WrittenAnswer {
    return (this.#current = new WrittenAnswer(this))
  }

  isCurrent(answer: WrittenAnswer): boolean {
    return this.#current === answer
  }

  /** The usage of a call, with what hooks have spent on checking its answer. */
  withSpent(usage: TokenUsage): TokenUsage {
    return this.spent === noTokens ? usage : addTokens(usage, this.spent)
  }

  retract(why: string): void {
    const { effects, now } = this.run
    if (this.#current?.isShown === true) effects.emit?.({ type: 'retracted', step: this.#step, at: now, why })
    this.#current = undefined
  }

  /** Emits what has not been emitted of an answer that has passed. Without another attempt, nothing more is written. */
  finish(written: InferenceResponse, passed: InferenceResponse): void {
    const answer = this.#current
    const kept = this.policy === 'window' ? answer?.isBeginningOf(passed) === true : written === passed
    if (!kept) this.retract('a hook changed or withheld the answer')
    this.#current = undefined
    if (kept && this.policy === 'after' && answer?.isShown === true) return
    let skip = kept ? (answer?.released ?? 0) : 0
    for (const part of passed.content) {
      const delta = toDelta(part)
      if (delta === undefined) continue
      const seen = delta.type === 'toolCallDelta' ? 0 : Math.min(skip, delta.delta.length)
      skip -= seen
      if (seen < delta.delta.length) this.emit({ ...delta, delta: delta.delta.slice(seen) })
    }
  }

  emit(delta: InferenceDelta): void {
    const { effects } = this.run
    effects.emit?.({ ...delta, step: this.#step, at: effects.clockTime() })
  }
}

/**
 * The answer of one attempt. With `window`, hooks get the answer so far, again and again. Once one of them blocks or fails,
 * nothing more is emitted until hooks have decided on the complete answer.
 */
class WrittenAnswer {
  readonly #stream: AnswerStream
  readonly #parts: { type: 'text' | 'reasoning'; text: string }[] = []
  isShown = false
  #written = 0
  /** How much had been written at the last check. */
  #checked = 0
  #emitted = ''
  /** The check that is running. */
  #checking: Promise<void> | undefined
  #isClosed = false

  constructor(stream: AnswerStream) {
    this.#stream = stream
  }

  /** How many characters hooks have passed. */
  get released(): number {
    return this.#emitted.length
  }

  write(delta: InferenceDelta): void {
    const { policy } = this.#stream
    if (policy === 'hold' || !this.#stream.isCurrent(this)) return
    if (policy === 'after') return this.#show(delta)
    if (delta.type === 'toolCallDelta') return // tool calls are emitted when they are complete
    const last = this.#parts.at(-1)
    if (last?.type === delta.type) last.text += delta.delta
    else this.#parts.push({ type: delta.type, text: delta.delta })
    this.#written += delta.delta.length
    this.#check()
  }

  /** Call when the answer is complete or has failed: returns the check that is running, and no other starts. */
  settled(): Promise<void> | undefined {
    this.#isClosed = true
    return this.#checking
  }

  /** Whether a response starts with what was emitted. */
  isBeginningOf({ content }: InferenceResponse): boolean {
    return textParts(content)
      .map((part) => part.text)
      .join('')
      .startsWith(this.#emitted)
  }

  #show(delta: InferenceDelta): void {
    if (!this.#stream.isCurrent(this)) return
    this.isShown = true
    this.#stream.emit(delta)
  }

  /** The longer the answer, the longer the pieces: otherwise the cost would grow with the square of the length. */
  #isDue(): boolean {
    const step = Math.max(STEP, this.#written >> 4)
    return this.#checking === undefined && !this.#isClosed && this.#written - Math.max(this.#checked, OVERLAP) >= step
  }

  #check(): void {
    if (!this.#isDue()) return
    this.#checked = this.#written
    this.#checking = this.#passNext().finally(() => {
      this.#checking = undefined
      this.#check()
    })
  }

  async #passNext(): Promise<void> {
    const passed = await this.#pass()
    if (passed !== undefined && this.isBeginningOf(passed)) this.#release(passed)
    else this.#isClosed = true
  }

  /** The answer so far as hooks changed it; undefined if one blocked it or failed. */
  async #pass(): Promise<InferenceResponse | undefined> {
    const { run, request } = this.#stream
    const plan = run.parts.plans.of('afterInference')
    const response = toResponse({
      content: this.#parts.map((part) => Object.freeze({ ...part })),
      finishReason: 'other',
    })
    const facts = { request, response }
    // A check leaves no trace in the ledger, on the clock of the run, or under the keys of the complete answer.
    const host = deriveHost(run, {
      effects: run.effects.scope(),
      place: 'window',
      spend: (usage) => void (this.#stream.spent = addTokens(this.#stream.spent, usage)),
    })
    const invocation = new Invocation(host, plan, run.state, facts)
    try {
      await runTransforms(invocation, plan.transforms.filter(isWindow))
      await runGuards(invocation, plan.guards.filter(isWindow))
    } catch {
      return undefined // the hook will fail on the complete answer as well, and that is recorded
    }
    return invocation.blocked === undefined ? (invocation.facts['response'] as InferenceResponse) : undefined
  }

  #release({ content }: InferenceResponse): void {
    let at = 0
    const parts = textParts(content)
    const length = parts.reduce((sum, part) => sum + part.text.length, 0)
    const limit = Math.min(length, this.#checked) - OVERLAP // a hook may have appended something
    for (const { type, text } of parts) {
      const delta = text.slice(Math.max(0, this.released - at), wholeCharacters(text, limit - at))
      at += text.length
      if (delta === '') continue
      this.#emitted += delta
      this.#show({ type, delta })
    }
  }
}

/** How much of a text to emit: a surrogate pair must not be split. */
function wholeCharacters(text: string, limit: number): number {
  const isHalf = limit > 0 && limit < text.length && text.codePointAt(limit - 1)! > 0xffff
  return Math.max(0, isHalf ? limit - 1 : limit)
}

function isWindow({ stream }: { readonly stream: string | undefined }): boolean {
  return stream === 'window'
}

function textParts(content: readonly Part[]) {
  return content.filter((part) => part.type === 'text' || part.type === 'reasoning')
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
