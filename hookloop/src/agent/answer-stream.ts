import type { InferenceDelta, InferenceResponse } from '../data/inference.ts'
import type { LiveRun } from './live-run.ts'

/**
 * Lets an answer be seen while it is written, or not before every hook on `afterInference` has passed it: the strictest
 * of them decides.
 */
export class AnswerStream {
  readonly onDelta: ((delta: InferenceDelta) => void) | undefined
  readonly #run: LiveRun
  readonly #step: number
  #shown = false

  constructor(run: LiveRun, step: number) {
    this.#run = run
    this.#step = step
    const { transforms, guards } = run.parts.stack.plan('afterInference')
    if ([...transforms, ...guards].some((hook) => hook.stream !== 'after')) return
    this.onDelta = (delta) => {
      this.#shown = true
      run.effects.emit?.(delta)
    }
  }

  retract(why: string): void {
    if (this.#shown) this.#run.effects.emit?.({ type: 'retracted', step: this.#step, why })
    this.#shown = false
  }

  finish(written: InferenceResponse, passed: InferenceResponse): void {
    if (written !== passed) this.retract('a hook changed or withheld the answer')
    if (this.#shown) return
    for (const part of passed.content) {
      if (part.type !== 'text' && part.type !== 'reasoning') continue
      if (part.text !== '') this.#run.effects.emit?.({ type: part.type, delta: part.text })
    }
  }
}
