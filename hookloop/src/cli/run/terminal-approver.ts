import { approval } from '../../capabilities/approval.ts'
import type { Capability } from '../../agent/capability.ts'
import { askHere } from './ask-approval.ts'
import type { Stdin } from './input.ts'
import type { LiveView } from '../terminal/live-view.ts'
import type { Screen } from '../terminal/screen.ts'

/** Whoever sits at the terminal, for as many runs as are watched there. */
export class Person {
  readonly #stdin: Stdin
  readonly #mayWait: boolean
  #at: { readonly screen: Screen; readonly view?: LiveView } | undefined

  /** `mayWait`: a question may be left open, because the run is kept. */
  constructor(stdin: Stdin, mayWait: boolean) {
    this.#stdin = stdin
    this.#mayWait = mayWait
  }

  /** What is looked at now. A live view says when everything before a question is on the screen. */
  sitsAt(at: { readonly screen: Screen; readonly view?: LiveView }): void {
    this.#at = at
  }

  readonly approval: Capability = approval(async (question, signal) => {
    const { screen, view } = this.#at!
    await view?.reached(question)
    return askHere(question, { screen, stdin: this.#stdin, signal, mayWait: this.#mayWait })
  })
}
