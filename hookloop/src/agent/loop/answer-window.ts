import {
  toResponse,
  type InferenceDelta,
  type InferenceRequest,
  type InferenceResponse,
} from '../../state/inference.ts'
import type { Part } from '../../state/message.ts'
import type { TokenUsage } from '../../state/usage.ts'
import { deriveHost } from '../../hooks/hook-host.ts'
import { Invocation } from '../../hooks/invocation.ts'
import { runGuards, runTransforms } from '../../hooks/run-hooks.ts'
import type { RunContext } from '../context/run-context.ts'

/** How far hooks must have seen beyond a piece before it is emitted: what they look for may span two pieces. */
const OVERLAP = 200
const STEP = 100

type Shown = {
  readonly request: InferenceRequest
  readonly show: (delta: InferenceDelta) => void
  readonly spend: (usage: TokenUsage) => void
}

/**
 * Emits an answer in pieces that the hooks with `stream: 'window'` have passed. They get the answer so far, again and
 * again. Once one of them blocks or fails, nothing more is emitted until hooks have decided on the complete answer.
 */
export class AnswerWindow {
  readonly #run: RunContext
  readonly #how: Shown
  readonly #parts: { type: 'text' | 'reasoning'; text: string }[] = []
  #written = 0
  /** How much had been written at the last check. */
  #checked = 0
  #emitted = ''
  /** The check that is running. */
  #checking: Promise<void> | undefined
  #isClosed = false

  constructor(run: RunContext, how: Shown) {
    this.#run = run
    this.#how = how
  }

  /** How many characters were emitted. */
  get released(): number {
    return this.#emitted.length
  }

  write(delta: InferenceDelta): void {
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
    const plan = this.#run.parts.stack.plan('afterInference')
    const response = toResponse({
      content: this.#parts.map((part) => Object.freeze({ ...part })),
      finishReason: 'other',
    })
    const facts = { request: this.#how.request, response }
    // A check leaves no trace in the ledger, on the clock of the run, or under the keys of the complete answer.
    const host = deriveHost(this.#run, {
      effects: this.#run.effects.scope(),
      place: 'window',
      spend: this.#how.spend,
    })
    const invocation = new Invocation(host, plan, this.#run.state, facts)
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
      this.#how.show({ type, delta })
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
