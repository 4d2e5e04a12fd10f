import { lstat } from 'node:fs/promises'
import type { Capability } from '../agent/capability.ts'
import { checkOptions, checkPositiveIntegers, definedOptions, invalidOption } from '../agent/check-options.ts'
import type { AgentState } from '../state/agent-state.ts'
import { messageOf } from '../errors.ts'
import { guard } from '../hooks/hook.ts'
import { withTimeout } from '../system/timeout.ts'

/** Whoever knows whether a run is to end: a reason, or true, means that it is. It may be asked at any time. */
export type CancellationSource = {
  isCancellationRequested(state: AgentState): boolean | string | Promise<boolean | string>
}

export type CancellationOptions = {
  /** How long a source may take to answer. */
  readonly timeoutMs?: number
  /** What it means when the source fails or does not answer: that the run stops, or that nothing was requested. */
  readonly onFailure?: 'stop' | 'continue'
}

export const cancellationPolicy = Object.freeze({ timeoutMs: 5_000, onFailure: 'stop' })

const WORDS = 'The run was asked to stop.'

/**
 * Cooperative cancellation: the source is asked before each execution, step, model call and tool call, and a run that is to end
 * ends there, in order. What is under way is not cut off; that is what `signal` is for.
 */
export function cancellation(
  source: CancellationSource | CancellationSource['isCancellationRequested'],
  options: CancellationOptions = {},
): Capability {
  checkOptions('cancellation', options, Object.keys(cancellationPolicy))
  const { timeoutMs, onFailure } = { ...cancellationPolicy, ...definedOptions(options) }
  checkPositiveIntegers('cancellation', { timeoutMs }, ['timeoutMs'])
  if (onFailure !== 'stop' && onFailure !== 'continue') {
    throw invalidOption('cancellation', `"onFailure" is 'stop' or 'continue'`, onFailure)
  }
  const ask = askerOf(source)
  const notAnswered = (): Error => new Error(`it did not answer within ${timeoutMs} ms`)
  const check = guard(
    ['beforeExecution', 'beforeStep', 'beforeInference', 'beforeToolUse'],
    (ctx) => {
      const decide = (answer: unknown): typeof ctx => {
        if (answer === false || answer === '') return ctx
        if (answer === true || typeof answer === 'string') {
          return ctx.stop(answer === true ? WORDS : answer, { reason: 'userRequested' })
        }
        return unanswered(`it answered with ${typeof answer} instead of true, false or a reason`)
      }
      const unanswered = (why: string): typeof ctx => {
        if (onFailure === 'continue') return ctx
        return ctx.stop(`Nobody knows whether the run was asked to stop: ${why}.`, { reason: 'errorForbade' })
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
    // An effect: what the source said is recorded, and a replay ends where the run did.
    { name: 'cancellation.check', priority: 250, effect: true },
  )
  return { name: 'cancellation', hooks: [check] }
}

/** A source in memory. One may serve many runs: all of them end. */
export function cancellationSource(): CancellationSource & {
  readonly cancel: (reason?: string) => void
  readonly reset: () => void
} {
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

/** A source that is a file: as long as something is there under that name, runs are to end. */
export function cancellationFile(path: string): CancellationSource {
  return {
    isCancellationRequested: async () => {
      try {
        await lstat(path)
        return `The run was asked to stop by the file ${path}.`
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
    throw invalidOption('cancellation', 'a source is a function, or has a method isCancellationRequested()', source)
  }
  return (state) => (typeof source === 'function' ? source(state) : source.isCancellationRequested(state))
}
