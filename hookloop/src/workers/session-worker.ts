import type { SessionStore } from '../sessions/stores/store.ts'

/** A worker that serves sessions. */
export interface SessionWorker {
  /** The number of turns that it drives now. */
  readonly running: number
  /** Whether `close` was called. */
  readonly isDraining: boolean
  /** Rejects if the store or the queue cannot be reached. Restate calls the worker, so it is not asked. */
  check(): Promise<void>
  /** Takes no new turns and suspends its runs at the end of their steps; other workers continue them. Resolves when none runs. */
  close(): Promise<void>
}

/** An id that no session has: reading it shows whether the store can be reached, at the cost of one lookup. */
const NO_SESSION = 'hookloop/worker/check'

/** Rejects if the store cannot be reached. */
export async function checkReachable(store: SessionStore): Promise<void> {
  await store.read(NO_SESSION, { after: Infinity })
}

/** How far the clock of the store is ahead of the clock of this process. */
export async function clockOffsetMs(store: SessionStore): Promise<number> {
  let offset = 0
  await store.update(NO_SESSION, (value = null, now = Date.now()) => {
    offset = now - Date.now()
    return value
  })
  return Math.round(offset)
}
