import type { Run } from '../core/agent/run.ts'

export const exitCodes = {
  completed: 0,
  failed: 1,
  usage: 2,
  stopped: 3,
  suspended: 4,
  busy: 5,
  cancelled: 130,
  pipeClosed: 141,
  terminated: 143,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** Printed by `run --help`. */
export const exitCodeTable: readonly (readonly [code: ExitCode, meaning: string])[] = [
  [exitCodes.completed, 'completed'],
  [exitCodes.failed, 'failed: the model call failed, a hook threw, …'],
  [exitCodes.usage, 'usage error: nothing was run; the command line, or a file or model it names, is wrong'],
  [exitCodes.stopped, 'stopped by a limit, a policy or hookloop stop'],
  [exitCodes.suspended, 'suspended: an approval is pending'],
  [exitCodes.busy, 'busy: the session is locked by another process; try again later'],
  [exitCodes.cancelled, 'cancelled with Ctrl-C'],
  [exitCodes.pipeClosed, 'the reader of stdout closed the pipe'],
  [exitCodes.terminated, 'terminated with SIGTERM'],
]

export type Interruption = 'SIGINT' | 'SIGTERM' | 'EPIPE'

const interruptionCodes: { readonly [I in Interruption]: ExitCode } = {
  SIGINT: exitCodes.cancelled,
  SIGTERM: exitCodes.terminated,
  EPIPE: exitCodes.pipeClosed,
}

export function interruptionExitCode(by: Interruption = 'SIGINT'): ExitCode {
  return interruptionCodes[by]
}

export function runExitCode({ status }: Pick<Run<unknown>, 'status'>, by: Interruption | undefined): ExitCode {
  if (status !== 'cancelled') return exitCodes[status]
  return by === undefined ? exitCodes.stopped : interruptionExitCode(by) // another process has stopped it
}
