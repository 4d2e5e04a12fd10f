import type { SessionRunOptions } from '../../agent/agent.ts'
import { checkArgument, checkOptions } from '../../state/check-options.ts'
import { stopError } from '../../state/stop-request.ts'
import { AgentError } from '../../errors.ts'
import { checkSessionId, checkStore, type SessionStore } from '../stores/store.ts'
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
  checkStore('requestStop', store)
  checkOptions('requestStop', options, ['session', 'by', 'reason'])
  const { session, by, reason } = options
  checkText('by', by, MAX_BY_CHARS)
  checkText('reason', reason, MAX_REASON_CHARS)
  checkSessionId(session)
  if (typeof (store as Partial<SessionStore>).requestStop !== 'function')
    throw new AgentError(
      'AGENT_INVALID_OPTION',
      'requestStop: this store has no method requestStop, so a run can only be stopped by its own process, with its signal.',
    )
  const at = Date.now()
  return store.requestStop(session, { ...(by !== undefined && { by }), ...(reason !== undefined && { reason }), at })
}

function checkText(name: string, text: unknown, maxChars: number): void {
  const isText = typeof text === 'string' && text.length > 0 && text.length <= maxChars && text.isWellFormed()
  checkArgument('requestStop', [name, text], text === undefined || isText, `a text of 1 to ${maxChars} characters`)
}

/** Runs work with a signal that aborts with that of the caller, and when the run of the session is to stop. */
export async function withStop<T>(
  session: LockedSession,
  how: SessionRunOptions,
  work: (how: SessionRunOptions & { readonly signal: AbortSignal }) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const { signal } = how
  const cancel = (): void => controller.abort(signal?.reason)
  if (signal?.aborted === true) cancel()
  signal?.addEventListener('abort', cancel, { once: true })
  session.onStop((request) => controller.abort(stopError(request)))
  try {
    return await work({ ...how, signal: controller.signal })
  } finally {
    signal?.removeEventListener('abort', cancel)
  }
}
