import { approval } from '../../capabilities/approval.ts'
import type { Capability } from '../../agent/capability.ts'
import { askApproval } from './ask-approval.ts'
import type { Stdin } from './input.ts'
import type { LiveView } from '../terminal/live-view.ts'
import type { Screen } from '../terminal/screen.ts'

/** Asks the user at the terminal for approvals, on the screen of the run that is shown. */
export class TerminalApprover {
  readonly #stdin: Stdin
  readonly #canSuspend: boolean
  #shown: { readonly screen: Screen; readonly view?: LiveView } | undefined

  /** `canSuspend`: a question can be answered later, because the run is stored. */
  constructor(stdin: Stdin, canSuspend: boolean) {
    this.#stdin = stdin
    this.#canSuspend = canSuspend
  }

  /** Sets the screen to ask on. With a live view, a question waits until everything before it is shown. */
  attach(shown: { readonly screen: Screen; readonly view?: LiveView }): void {
    this.#shown = shown
  }

  readonly capability: Capability = approval(async (question, signal) => {
    const { screen, view } = this.#shown!
    await view?.reached(question)
    return askApproval(question, { screen, stdin: this.#stdin, signal, canSuspend: this.#canSuspend })
  })
}
