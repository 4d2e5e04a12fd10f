import { resolve } from 'node:path'
import { checkOptions, invalidOption } from '../values/check-options.ts'
import { AgentError } from '../errors.ts'
import { action, type Action, type HookTrigger } from '../plugin.ts'
import { isInjectionVariable, minimalEnvironment } from '../system/processes/minimal-environment.ts'
import { commandName, withoutCommand } from '../system/processes/command-name.ts'
import { runProcess, type Command, type ProcessResult } from '../system/processes/run-process.ts'
import { eventText } from './event.ts'
import { actionFailed, blockAt, parseAnswer, readOutcome } from './outcome.ts'

/** Options of `shell`. Either `command` or `args` is required. */
export type ShellOptions = {
  /** A command line for `sh -c`. The event is never part of it: the command reads it from standard input, as JSON. Required without `args`. */
  readonly command?: string
  /** A program and its arguments, run without a shell. Required without `command`. */
  readonly args?: readonly [string, ...string[]]
  /** The working directory. Default: that of the process when the hook is created. */
  readonly cwd?: string
  /** Variables for the command, in addition to `PATH`, `HOME` and the like. No other variable of the process is passed on. Default none. */
  readonly env?: { readonly [name: string]: string }
  /** Names of variables of the process that are passed on as well. Default none. */
  readonly passEnv?: readonly string[]
  /** Whether the event contains the complete conversation instead of its length and last message. Default: false. */
  readonly conversation?: boolean
  /** Maximum size of the output. Default: 65,536 bytes. A command that prints more fails. */
  readonly maxOutputBytes?: number
}

const TIMEOUT_MS = 60_000
const MAX_OUTPUT_BYTES = 65_536

/**
 * Runs a command with the event as JSON on standard input, and reads its output as an `ActionOutcome`.
 *
 * - No output: it has no opinion.
 * - Exit code 2: it blocks; standard error is the reason.
 * - Any other exit code except 0, a signal, a timeout, or output that is not an outcome: it fails. Guards fail closed.
 *
 * @example
 * guard('beforeToolUse', shell({ command: './check-command.sh' }), { tool: 'bash' })
 */
export function shell(options: ShellOptions): Action {
  checkOptions('shell', options, names)
  const run = commandOf(options)
  const { cwd = '.', env = {}, passEnv = [] } = options
  const hijacking = [...Object.keys(env), ...passEnv].find(isInjectionVariable)
  if (hijacking !== undefined) {
    throw invalidOption('shell', `"${hijacking}" would run something before the command`, hijacking)
  }
  const { maxOutputBytes = MAX_OUTPUT_BYTES, conversation = false } = options
  const folder = resolve(cwd)
  const command = options.command ?? options.args!
  const label = `shell:${commandName(command)}`
  return action({
    kind: 'shell',
    label,
    limitsItself: true,
    async perform(ctx, { signal, timeoutMs = TIMEOUT_MS }) {
      const passed = Object.fromEntries(passEnv.map((name) => [name, process.env[name]]))
      const result = await runProcess(run, {
        cwd: folder,
        env: minimalEnvironment({ ...passed, ...env, HOOKLOOP_TRIGGER: ctx.trigger }, { cwd: folder }),
        input: `${eventText(ctx, { conversation })}\n`,
        timeoutMs,
        signal,
        output: { head: maxOutputBytes, tail: 1_024 },
      })
      const outcome = readOutcome(answerOf(result, { label, command, timeoutMs, trigger: ctx.trigger }), ctx, label)
      const warning = { code: 'ACTION_WARNING', message: `"${label}" has ended. ${result.problem}` } as const
      return result.problem === undefined ? outcome : { ...outcome, warnings: [warning] }
    },
  })
}

const names = ['command', 'args', 'cwd', 'env', 'passEnv', 'conversation', 'maxOutputBytes']

function commandOf({ command, args }: ShellOptions): Command {
  if (command !== undefined && command.trim() !== '' && args === undefined) return { shell: 'sh', line: command }
  if (args === undefined || command !== undefined) throw invalidOption('shell', 'use either "command" or "args"', args)
  if (args.length > 0 && args[0] !== '') return args
  throw invalidOption('shell', '"args" must be a program and its arguments', args)
}

/** What the process printed, or a block for exit code 2. Throws for everything else. */
function answerOf(
  result: ProcessResult,
  {
    label,
    command,
    timeoutMs,
    trigger,
  }: { label: string; command: string | readonly string[]; timeoutMs: number; trigger: HookTrigger },
): unknown {
  const { ended, exitCode, signal, stdout, stderr, problem = '' } = result
  const failed = (how: string, details = ''): AgentError =>
    actionFailed(label, how, [details, problem].filter((text) => text !== '').join('. '))
  if (ended === 'timedOut')
    throw new AgentError('HOOK_TIMED_OUT', `"${label}" timed out after ${timeoutMs} ms. ${problem}`.trim())
  if (ended === 'cancelled') throw failed('was cancelled')
  if (ended === 'notStarted') throw failed('could not be started')
  const reason = stderr.head.trim()
  if (exitCode === 2)
    return blockAt(trigger, reason === '' ? `"${label}" blocked it.` : withoutCommand(reason, command))
  if (exitCode !== 0) {
    throw failed(
      exitCode === null ? `was killed by ${signal ?? 'a signal'}` : `exited with ${exitCode}`,
      reason.slice(0, 500),
    )
  }
  if (stdout.droppedBytes > 0) throw failed(`printed ${stdout.totalBytes} bytes, more than "maxOutputBytes"`)
  return parseAnswer(stdout.head, label)
}
