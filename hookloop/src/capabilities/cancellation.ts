import { lstat } from 'node:fs/promises'
import type { Capability } from '../agent/capability.ts'
import { checkArgument, checkChoice, checkNoOptions, invalidOption, readOptions } from '../state/check-options.ts'
import type { AgentState } from '../state/agent-state.ts'
import { messageOf, clause } from '../errors.ts'
import { guard } from '../hooks/hook.ts'
import { withTimeout } from '../system/timeout.ts'

/** Where `cancellation` looks up whether a run was cancelled. */
export type CancellationSource = {
  /** Returns true or a reason if the run is to stop, false otherwise. */
  isCancellationRequested(state: AgentState): boolean | string | Promise<boolean | string>
}

/** Options of `cancellation`. */
export type CancellationOptions = {
  /** How long the source may take to answer. Default 5,000. */
  readonly timeoutMs?: number
  /** Whether the run stops or continues if the source throws or does not answer in time. Default `'stop'`. */
  readonly onFailure?: 'stop' | 'continue'
}

export const cancellationDefaults = Object.freeze({ timeoutMs: 5_000, onFailure: 'stop' })

const CANCELLED = 'Cancellation was requested.'

/**
 * Cooperative cancellation: the source is checked before each execution, step, model call and tool call. A call that is
 * already running is not interrupted; use `signal` of `agent.run` for that.
 *
 * @example
 * const source = cancellationSource()
 * const agent = createAgent({ model, use: [cancellation(source)] })
 * onShutdown(() => source.cancel('The server is shutting down.'))
 */
export function cancellation(
  source: CancellationSource | CancellationSource['isCancellationRequested'],
  options: CancellationOptions = {},
): Capability {
  const { timeoutMs, onFailure } = readOptions('cancellation', options, cancellationDefaults)
  checkChoice('cancellation', 'onFailure', onFailure, ['stop', 'continue'])
  const ask = askerOf(source)
  const notAnswered = (): Error => new Error(`it did not answer within ${timeoutMs} ms`)
  const check = guard(
    ['beforeExecution', 'beforeStep', 'beforeInference', 'beforeToolUse'],
    (ctx) => {
      const decide = (answer: unknown): typeof ctx => {
        if (answer === false || answer === '') return ctx
        if (answer === true || typeof answer === 'string') {
          return ctx.stop(answer === true ? CANCELLED : answer, { reason: 'userRequested' })
        }
        return unanswered(`it answered with ${typeof answer} instead of true, false or a reason`)
      }
      const unanswered = (why: string): typeof ctx => {
        if (onFailure === 'continue') return ctx
        return ctx.stop(`The cancellation source failed: ${clause(why)}.`, { reason: 'errorForbade' })
      }
      const failed = (thrown: unknown): typeof ctx => unanswered(messageOf(thrown))
      try {
        const answer = ask(ctx.state)
        return answer instanceof Promise
          ? withTimeout(answer, timeoutMs, notAnswered).then(decide, failed)
          : decide(answer)
      } catch (thrown) {
        return failed(thrown)
      }
    },
    // An effect: the answer is recorded, so that a replay stops where the run did.
    { name: 'cancellation.check', priority: 250, effect: true },
  )
  return { name: 'cancellation', hooks: [check] }
}

/** Creates a source in memory with `cancel` and `reset`. It cancels every run that uses it. */
export function cancellationSource(...more: []): CancellationSource & {
  readonly cancel: (reason?: string) => void
  readonly reset: () => void
} {
  checkNoOptions('cancellationSource', more)
  let requested: boolean | string = false
  return {
    isCancellationRequested: () => requested,
    cancel: (reason) => {
      requested = reason === undefined || reason === '' ? true : reason
    },
    reset: () => {
      requested = false
    },
  }
}

/** A source that cancels runs as long as a file exists at this path. */
export function cancellationFile(path: string, ...more: []): CancellationSource {
  checkNoOptions('cancellationFile', more)
  checkArgument('cancellationFile', ['path', path], typeof path === 'string' && path !== '', 'the path of a file')
  return {
    isCancellationRequested: async () => {
      try {
        await lstat(path)
        return `Cancellation was requested by the file ${path}.`
      } catch (thrown) {
        const code = (thrown as { readonly code?: unknown }).code
        if (code === 'ENOENT' || code === 'ENOTDIR') return false
        throw thrown
      }
    },
  }
}

function askerOf(
  source: CancellationSource | CancellationSource['isCancellationRequested'],
): (state: AgentState) => unknown {
  const isThere = typeof source === 'function' || typeof source?.isCancellationRequested === 'function'
  if (!isThere) {
    throw invalidOption(
      'cancellation',
      'the source must be a function or have a method isCancellationRequested()',
      source,
    )
  }
  return (state) => (typeof source === 'function' ? source(state) : source.isCancellationRequested(state))
}
