import { resolve } from 'node:path'
import { AgentError } from '../errors.ts'
import { action, type Action } from '../hooks/action.ts'
import { checkKnown, invalidOption } from '../agent/options.ts'
import { minimalEnvironment } from '../machine/minimal-environment.ts'
import { runProcess, type ProcessResult } from '../machine/run-process.ts'
import { eventFor } from './event.ts'
import { specOf, type HookTrigger } from '../hooks/triggers.ts'
import { readOutcome, type ActionOutcome } from './outcome.ts'

/** A command as a hook. One of `command` and `args`. */
export type ShellOptions = {
  /** A line for `sh -c`. Nothing of the event is ever put into it: it is on standard input, as JSON. */
  readonly command?: string
  /** A program and its arguments, without a shell. */
  readonly args?: readonly [string, ...string[]]
  readonly cwd?: string
  /** Variables it sees beside where things are and who the user is. Nothing else of ours is passed on. */
  readonly env?: { readonly [name: string]: string }
  /** Bytes of what it prints that are read; one that prints more has failed. */
  readonly maxOutputBytes?: number
}

export const shellPolicy = Object.freeze({ timeoutMs: 60_000, maxOutputBytes: 65_536 })

/**
 * Runs a command with the event as JSON on standard input, and reads what it prints as an outcome. It prints nothing: it has no
 * opinion. It exits with 2: that is a no, and what it wrote to standard error is why. It exits with anything else but 0, is
 * killed, takes too long or prints what is no outcome: it has failed, which is a no of a guard.
 */
export function shell(options: ShellOptions): Action {
  const argv = argvOf(options)
  const { cwd = '.', env = {}, maxOutputBytes = shellPolicy.maxOutputBytes } = options
  const label = `shell:${options.command ?? argv.join(' ')}`
  return action({
    kind: 'shell',
    label,
    async perform(ctx, { signal, timeoutMs = shellPolicy.timeoutMs }) {
      const folder = resolve(cwd)
      const result = await runProcess(argv, {
        cwd: folder,
        env: minimalEnvironment({ ...env, HOOKLOOP_TRIGGER: ctx.trigger }, { cwd: folder }),
        input: `${JSON.stringify(eventFor(ctx))}\n`,
        timeoutMs,
        signal,
        output: { head: maxOutputBytes, tail: 1_024 },
      })
      return readOutcome(answerOf(result, { label, timeoutMs, trigger: ctx.trigger }), ctx, label)
    },
  })
}

function argvOf(options: ShellOptions): readonly [string, ...string[]] {
  checkKnown('shell', options, ['command', 'args', 'cwd', 'env', 'maxOutputBytes'])
  const { command, args } = options
  if ((command === undefined) === (args === undefined))
    throw invalidOption('shell', 'it needs either "command" or "args"', options)
  if (args !== undefined) {
    if (Array.isArray(args) && args.length > 0 && args.every((each) => typeof each === 'string')) return args
    throw invalidOption('shell', '"args" must be a program and its arguments, as texts', args)
  }
  if (typeof command === 'string' && command.trim() !== '') return ['sh', '-c', command]
  throw invalidOption('shell', '"command" must be a line for a shell', command)
}

/** What a process said. Throws for whatever is neither an answer nor a plain no. */
function answerOf(
  result: ProcessResult,
  { label, timeoutMs, trigger }: { label: string; timeoutMs: number; trigger: HookTrigger },
): unknown {
  const { ended, exitCode, signal, stdout, stderr, problem } = result
  if (ended === 'timedOut') throw new AgentError('HOOK_TIMED_OUT', `"${label}" did not answer within ${timeoutMs} ms.`)
  if (ended === 'cancelled') throw failed(label, 'was cancelled')
  if (ended === 'notStarted') throw failed(label, `could not be started: ${problem ?? 'nobody knows why'}`)
  const said = stderr.head.trim()
  if (exitCode === 2) return noAt(trigger, said === '' ? `"${label}" said no.` : said)
  if (exitCode !== 0) {
    const how = exitCode === null ? `was killed by ${signal ?? 'a signal'}` : `exited with ${exitCode}`
    throw failed(label, said === '' ? how : `${how}: ${said.slice(0, 500)}`)
  }
  if (stdout.droppedBytes > 0) throw failed(label, `printed ${stdout.totalBytes} bytes, which is more than is read`)
  const text = stdout.head.trim()
  if (text === '') return {}
  try {
    return JSON.parse(text)
  } catch {
    throw new AgentError('HOOK_OUTCOME_INVALID', `"${label}" printed something that is not JSON: ${text.slice(0, 200)}`)
  }
}

/** A no, in the way a trigger has one. */
function noAt(trigger: HookTrigger, reason: string): ActionOutcome {
  return specOf(trigger).no === 'forbid' ? { stop: reason } : { decision: 'block', reason }
}

function failed(label: string, how: string): AgentError {
  return new AgentError('HOOK_FAILED', `"${label}" ${how}.`)
}
