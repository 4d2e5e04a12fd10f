import {
  toResponse,
  type InferenceDelta,
  type InferenceRequest,
  type InferenceResponse,
} from '../../state/inference.ts'
import type { Part } from '../../state/message.ts'
import type { TokenUsage } from '../../state/usage.ts'
import { Invocation } from '../../hooks/invocation.ts'
import { runGuards, runTransforms } from '../../hooks/run-hooks.ts'
import type { RunContext } from '../loop/run-context.ts'
import { TrailHost } from '../loop/trail.ts'

/** How much must have been judged beyond a piece before it is shown: what is looked for may begin in one and end in the next. */
const OVERLAP = 200
const STEP = 100

type Shown = {
  readonly request: InferenceRequest
  readonly show: (delta: InferenceDelta) => void
  readonly spend: (usage: TokenUsage) => void
}

/**
 * An answer shown in pieces that the hooks with `stream: 'window'` have passed. They are given the answer so far, again
 * and again; once one of them has said no, nothing more is shown before the whole answer is judged.
 */
export class AnswerWindow {
  readonly #run: RunContext
  readonly #how: Shown
  readonly #parts: { type: 'text' | 'reasoning'; text: string }[] = []
  #written = 0
  /** How much had been written at the last look. */
  #looked = 0
  #emitted = ''
  /** The look that is under way. */
  #looking: Promise<void> | undefined
  #isClosed = false

  constructor(run: RunContext, how: Shown) {
    this.#run = run
    this.#how = how
  }

  /** How many characters were shown. */
  get released(): number {
    return this.#emitted.length
  }

  write(delta: InferenceDelta): void {
    if (delta.type === 'toolCallDelta') return // a call is shown when it is made
    const last = this.#parts.at(-1)
    if (last?.type === delta.type) last.text += delta.delta
    else this.#parts.push({ type: delta.type, text: delta.delta })
    this.#written += delta.delta.length
    this.#look()
  }

  /** The answer is written, or will not be: what is under way is waited for, and nobody looks again. */
  settled(): Promise<void> | undefined {
    this.#isClosed = true
    return this.#looking
  }

  /** Whether a response begins with what was shown. */
  isBeginningOf({ content }: InferenceResponse): boolean {
    return spoken(content)
      .map((part) => part.text)
      .join('')
      .startsWith(this.#emitted)
  }

  /** The longer the answer, the longer the pieces: looking at it must not cost the square of its length. */
  #isDue(): boolean {
    const step = Math.max(STEP, this.#written >> 4)
    return this.#looking === undefined && !this.#isClosed && this.#written - Math.max(this.#looked, OVERLAP) >= step
  }

  #look(): void {
    if (!this.#isDue()) return
    this.#looked = this.#written
    this.#looking = this.#judge().finally(() => {
      this.#looking = undefined
      this.#look()
    })
  }

  async #judge(): Promise<void> {
    const passed = await this.#pass()
    if (passed !== undefined && this.isBeginningOf(passed)) this.#release(passed)
    else this.#isClosed = true
  }

  /** The answer so far as hooks leave it, unless one says no or fails. */
  async #pass(): Promise<InferenceResponse | undefined> {
    const plan = this.#run.parts.stack.plan('afterInference')
    const response = toResponse({
      content: this.#parts.map((part) => Object.freeze({ ...part })),
      finishReason: 'other',
    })
    const facts = { request: this.#how.request, response }
    const host = new WindowHost(this.#run)
    const firing = new Invocation(host, plan, this.#run.state, facts)
    try {
      await runTransforms(firing, plan.transforms.filter(isWindow))
      await runGuards(firing, plan.guards.filter(isWindow))
    } catch {
      return undefined // the hook will fail on the whole answer, too, and be told then
    } finally {
      this.#how.spend(host.spentByHooks)
    }
    return firing.blocked === undefined ? (firing.facts['response'] as InferenceResponse) : undefined
  }

  #release({ content }: InferenceResponse): void {
    let at = 0
    const parts = spoken(content)
    const length = parts.reduce((sum, part) => sum + part.text.length, 0)
    const limit = Math.min(length, this.#looked) - OVERLAP // a hook may have added something at the end
    for (const { type, text } of parts) {
      const delta = text.slice(Math.max(0, this.released - at), wholeCharacters(text, limit - at))
      at += text.length
      if (delta === '') continue
      this.#emitted += delta
      this.#how.show({ type, delta })
    }
  }
}

/** How much of a text is shown: half of a character could not be written by whoever shows it. */
function wholeCharacters(text: string, limit: number): number {
  const isHalf = limit > 0 && limit < text.length && text.codePointAt(limit - 1)! > 0xffff
  return Math.max(0, isHalf ? limit - 1 : limit)
}

function isWindow({ stream }: { readonly stream: string | undefined }): boolean {
  return stream === 'window'
}

function spoken(content: readonly Part[]) {
  return content.filter((part) => part.type === 'text' || part.type === 'reasoning')
}

/** A look at an unfinished answer leaves nothing behind: neither in the ledger nor on the clock of the run. */
class WindowHost extends TrailHost {
  constructor(run: RunContext) {
    super(run, [], [], run.effects.scope('window'))
    this.place = `${run.place}/window` // keys of its own: what the whole answer is judged under is recorded
  }
}
