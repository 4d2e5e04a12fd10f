import type { Run } from '../agent/run.ts'

/** What a script can tell from how the command ended. */
export const exitCodes = {
  completed: 0,
  failed: 1,
  usage: 2,
  stopped: 3,
  suspended: 4,
  busy: 5,
  cancelled: 130,
  readerGone: 141,
  terminated: 143,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** Shown by `--help`. */
export const exitCodeTable: readonly (readonly [code: ExitCode, meaning: string])[] = [
  [exitCodes.completed, 'completed'],
  [exitCodes.failed, 'failed: the model could not be reached, a hook threw, …'],
  [exitCodes.usage, 'nothing was run: the command line, or a file or model it names, is wrong'],
  [exitCodes.stopped, 'stopped by a limit or a policy'],
  [exitCodes.suspended, 'suspended: it waits for a person'],
  [exitCodes.busy, 'busy: another process works on the session; try again later'],
  [exitCodes.cancelled, 'cancelled with Ctrl-C (143: terminated, 141: nobody reads the output any more)'],
]

/** Why a run was cancelled, from the outside. */
export type Interruption = 'SIGINT' | 'SIGTERM' | 'EPIPE'

export function exitCodeOf({ status }: Pick<Run<unknown>, 'status'>, by: Interruption | undefined): ExitCode {
  return status === 'cancelled' ? exitCodeOfInterruption(by) : exitCodes[status]
}

export function exitCodeOfInterruption(by: Interruption | undefined): ExitCode {
  switch (by) {
    case 'SIGTERM':
      return exitCodes.terminated
    case 'EPIPE':
      return exitCodes.readerGone
    case 'SIGINT':
    case undefined:
      return exitCodes.cancelled
    default:
      return by satisfies never
  }
}
