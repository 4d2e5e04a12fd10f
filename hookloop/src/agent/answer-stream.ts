import type { InferenceDelta, InferenceResponse } from '../data/inference.ts'
import type { LiveRun } from './live-run.ts'

/**
 * Lets an answer be seen while it is written, or not before every hook on `afterInference` has passed it: the strictest
 * of them decides.
 */
export class AnswerStream {
  readonly #run: LiveRun
  readonly #step: number
  readonly #isHeld: boolean
  #attempts = 0
  #shown = false

  constructor(run: LiveRun, step: number) {
    this.#run = run
    this.#step = step
    const { transforms, guards } = run.parts.stack.plan('afterInference')
    this.#isHeld = [...transforms, ...guards].some((hook) => hook.stream !== 'after')
  }

  /** Where an attempt writes to, if it may be seen. What an earlier one still writes then is not shown. */
  open(): ((delta: InferenceDelta) => void) | undefined {
    const attempt = ++this.#attempts
    if (this.#isHeld) return undefined
    return (delta) => {
      if (attempt !== this.#attempts) return
      this.#shown = true
      this.#run.effects.emit?.(delta)
    }
  }

  retract(why: string): void {
    if (this.#shown) this.#run.effects.emit?.({ type: 'retracted', step: this.#step, why })
    this.#shown = false
    this.#attempts++ // what is still being written is not shown either
  }

  finish(written: InferenceResponse, passed: InferenceResponse): void {
    this.#attempts++ // whatever is written from here on comes too late
    if (written !== passed) this.retract('a hook changed or withheld the answer')
    if (this.#shown) return
    for (const part of passed.content) {
      if (part.type !== 'text' && part.type !== 'reasoning') continue
      if (part.text !== '') this.#run.effects.emit?.({ type: part.type, delta: part.text })
    }
  }
}
