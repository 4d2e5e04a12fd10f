import type { ContinuationEvaluation, ContinuationOutcome } from '../../state/continuation.ts'
import type { ExecutionStatus, FinalRecord } from '../../state/execution.ts'
import type { Message } from '../../state/message.ts'
import type { Above, AgentPath } from '../../state/subagent.ts'
import type { Answers } from '../../state/tool-call.ts'

/** What a subagent has from the run that it is part of. */
export type Family = {
  readonly path: AgentPath
  /** What its ancestors had spent when it began, the outermost first. */
  readonly above: readonly Above[]
  /** Waits until its parent lets it end. Gives the votes of those who want more of it. */
  readonly letStop: (outcome: ContinuationOutcome) => Promise<readonly ContinuationEvaluation[]>
  /** One question to a person at a time, in the whole family. */
  readonly questions: Turns
}

/** Work of which one piece is done at a time, in the order in which it comes. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve()

  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => undefined)
    return turn
  }
}

/** How a run of an agent inside another ended. */
export type Ended = { readonly status: ExecutionStatus; readonly final?: FinalRecord }

/** How agents inside a run are begun, and gone on with. Handed in: they are runs, which use tools, which may be agents. */
export type Starts<R> = {
  readonly begin: (run: R, input: Message) => Promise<Ended>
  readonly resume?: (run: R, answers: Answers) => Promise<Ended>
}
