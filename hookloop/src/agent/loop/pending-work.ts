import type { TimedLedgerEntry } from '../../state/ledger.ts'
import { AgentError, messageOf } from '../../errors.ts'
import type { HookTrigger } from '../../hooks/triggers.ts'
import { Waiting } from './waiting.ts'

const DRAIN_MS = 5_000

/** Work that is under way: observers nobody waits for, and calls that a cancel must cut short. */
export class Outstanding {
  readonly #signal: AbortSignal
  #watched: Set<Promise<void>> | undefined
  readonly #waiting: Waiting | undefined

  constructor(signal: AbortSignal, cancellable: boolean) {
    this.#signal = signal
    if (!cancellable) return
    this.#waiting = new Waiting()
    signal.addEventListener('abort', this.#abortAll, { once: true })
  }

  /** Takes care of an observer that goes on after the loop does. */
  watch(
    at: { readonly step: number; readonly hook: string; readonly trigger: HookTrigger },
    work: PromiseLike<unknown>,
    failed: (entry: TimedLedgerEntry) => void,
  ): void {
    const started = performance.now()
    const watched = Promise.resolve(work).then(
      () => undefined,
      (error: unknown) => {
        failed({ ...at, mode: 'observe', error: messageOf(error), durationMs: performance.now() - started })
      },
    )
    this.#watched ??= new Set()
    this.#watched.add(watched)
    void watched.then(() => this.#watched!.delete(watched))
  }

  /** Lets observers finish, for a while, if there are any. */
  drain(): undefined | Promise<void> {
    const watched = this.#watched
    return watched === undefined || watched.size === 0 ? undefined : settle(watched)
  }

  /** Waits for work unless the run is cancelled first, with one listener for the whole run. */
  abortable<T>(work: Promise<T>): Promise<T> {
    if (this.#waiting === undefined) return work
    const waiting = this.#waiting.for(work)
    if (this.#signal.aborted) this.#abortAll()
    return waiting
  }

  /** Leaves nothing behind on a signal that may live as long as the process. */
  release(): void {
    if (this.#waiting !== undefined) this.#signal.removeEventListener('abort', this.#abortAll)
  }

  readonly #abortAll = (): void => this.#waiting?.giveUp(cancelled())
}

function cancelled(): AgentError {
  return new AgentError('RUN_CANCELLED', 'The run was cancelled.')
}

async function settle(watched: ReadonlySet<Promise<void>>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const time = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, DRAIN_MS)
  })
  while (watched.size > 0) {
    const before = watched.size
    await Promise.race([Promise.all(watched), time])
    if (watched.size >= before) break
  }
  clearTimeout(timer)
}
