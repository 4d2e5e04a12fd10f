import type { ContinuationEvaluation } from '../../state/continuation.ts'
import type { LedgerEntry } from '../../state/ledger.ts'
import type { TokenUsage, Usage } from '../../state/usage.ts'
import { AgentError } from '../../errors.ts'
import type { HookHost, ShadowLog } from '../../hooks/base-context.ts'
import { TrailHost } from '../loop/trail.ts'

type Judging = {
  readonly place: string
  readonly spent: () => Usage
  readonly spend: (usage: TokenUsage) => void
  /** Whether the call has ended, and its trail with it. */
  readonly isOver: () => boolean
}

/** The run as guards see it that judge one attempt: with what the others may cost, and without its own. */
export class AttemptHost extends TrailHost {
  readonly #judging: Judging

  constructor(run: HookHost, [trail, durations]: [LedgerEntry[], number[]], judging: Judging) {
    super(run, trail, durations)
    this.#judging = judging
    this.place = judging.place
  }

  override get spent(): Usage {
    return this.#judging.spent()
  }

  override spend(usage: TokenUsage): void {
    this.#judging.spend(usage)
  }

  /** What a shadow would have done is told with the call, unless it answers only after it. */
  override get shadows(): ShadowLog | undefined {
    const { shadows } = this.run
    return (
      shadows && {
        note: (at, hook, durationMs, what) => {
          if (this.#judging.isOver()) shadows.note(at, hook, durationMs, what)
          else this.note(at, hook, durationMs, { ...what, shadow: true })
        },
        follow: (work, giveUp) => shadows.follow(work, giveUp),
      }
    )
  }
}

/** What whoever asked for a call is told that a guard forbade. */
export function forbade({ source, message }: ContinuationEvaluation): AgentError {
  return new AgentError('MODEL_FORBIDDEN', `"${source}" forbade the call: ${message}`)
}
