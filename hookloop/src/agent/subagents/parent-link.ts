import type { ContinuationEvaluation, ContinuationOutcome } from '../../state/continuation.ts'
import type { ExecutionStatus, FinalRecord } from '../../state/execution.ts'
import type { Message } from '../../state/message.ts'
import type { Above, AgentPath } from '../../state/subagent.ts'
import type { Answers } from '../../state/tool-call.ts'

/** The connection of a subagent to the run that it is part of. */
export type ParentLink = {
  readonly path: AgentPath
  /** The id of the conversation of the root run. */
  readonly conversation: string
  /** What its ancestors had spent when it started, outermost first. */
  readonly ancestors: readonly Above[]
  /** Waits until the parent lets it stop. Resolves with votes for another step, if there are any. */
  readonly confirmStop: (outcome: ContinuationOutcome) => Promise<readonly ContinuationEvaluation[]>
  /** Requests for approval, one at a time in the root run and all its subagents. */
  readonly approvals: SerialQueue
}

/** Runs one task at a time, in the order in which they were added. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve()

  run<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(task)
    this.#last = turn.catch(() => undefined)
    return turn
  }
}

/** How the run of a subagent ended. */
export type ChildResult = { readonly status: ExecutionStatus; readonly final?: FinalRecord }

/** Starts and resumes runs of subagents. Injected, because starting a run imports the loop, which imports this folder. */
export type ChildRuns<R> = {
  readonly start: (run: R, input: Message) => Promise<ChildResult>
  readonly resume?: (run: R, answers: Answers) => Promise<ChildResult>
}
