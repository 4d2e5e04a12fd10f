import type { SessionRunOptions } from '../../core/agent/agent.ts'
import { checkArgument, checkOptions } from '../../values/check-options.ts'
import { stopError } from '../../core/state/stop-request.ts'
import type { SessionStore } from '../stores/store.ts'
import type { LockedSession } from './session-lock.ts'

const MAX_BY_CHARS = 256
const MAX_REASON_CHARS = 2_000

/**
 * Requests that the run of a session stops, from any process. Returns false if there is no run to stop; then later runs are not
 * affected. The process that runs it cancels it within about a second, as with the `signal` of the run: nothing new starts, and
 * running calls are aborted. The request is stored: if that process dies first, or if the run is suspended, the run ends when it
 * is resumed, without another effect. `explain` says who requested it and why.
 *
 * @example
 * const isRunning = await requestStop(store, { session: 'build', by: 'jane', reason: 'wrong branch' })
 */
export async function requestStop(
  store: SessionStore,
  options: {
    readonly session: string
    /** Who requests it, for the record. */
    readonly by?: string
    readonly reason?: string
  },
): Promise<boolean> {
  checkOptions('requestStop', options, ['session', 'by', 'reason'])
  const { session, by, reason } = options
  checkText('by', by, MAX_BY_CHARS)
  checkText('reason', reason, MAX_REASON_CHARS)
  const at = Date.now()
  return store.requestStop(session, { ...(by !== undefined && { by }), ...(reason !== undefined && { reason }), at })
}

/** The texts come from users, and become part of the record. */
function checkText(name: string, text: string | undefined, maxChars: number): void {
  const isText = text === undefined || (text.length > 0 && text.length <= maxChars)
  checkArgument('requestStop', [name, text], isText, `a text of 1 to ${maxChars} characters`)
}

/** Runs work with a signal that aborts with that of the caller, and when the run of the session is to stop. */
export async function withStop<T>(
  session: LockedSession,
  options: SessionRunOptions,
  work: (options: SessionRunOptions & { readonly signal: AbortSignal }) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const { signal } = options
  const cancel = (): void => controller.abort(signal?.reason)
  if (signal?.aborted === true) cancel()
  signal?.addEventListener('abort', cancel, { once: true })
  session.writer.onStop((request) => controller.abort(stopError(request)))
  try {
    return await work({ ...options, signal: controller.signal })
  } finally {
    signal?.removeEventListener('abort', cancel)
  }
}
