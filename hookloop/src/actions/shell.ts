import { resolve } from 'node:path'
import { checkOptions, invalidOption } from '../agent/check-options.ts'
import { isJsonObject } from '../state/json.ts'
import { AgentError } from '../errors.ts'
import { action, type Action } from '../hooks/action.ts'
import type { HookTrigger } from '../hooks/triggers.ts'
import { isInjectionVariable, minimalEnvironment } from '../system/processes/minimal-environment.ts'
import type { Command } from '../system/processes/process-tag.ts'
import { runProcess, type ProcessResult } from '../system/processes/run-process.ts'
import { eventText } from './event.ts'
import { noAt, readOutcome } from './outcome.ts'

/** A command as a hook. One of `command` and `args`. */
export type ShellOptions = {
  /** A line for `sh -c`. Nothing of the event is ever put into it: it is on standard input, as JSON. */
  readonly command?: string
  /** A program and its arguments, without a shell. */
  readonly args?: readonly [string, ...string[]]
  /** Where it runs. The folder of the process, as it is when the hook is declared, unless told. */
  readonly cwd?: string
  /** Variables it sees beside where things are and who the user is. Nothing else of ours is passed on. */
  readonly env?: { readonly [name: string]: string }
  /** Names of variables of ours that it sees as well. */
  readonly passEnv?: readonly string[]
  /** Whether it is told whole conversations, where there is one, and not only their length and their last message. */
  readonly conversation?: boolean
  /** Bytes of what it prints that are read; one that prints more has failed. */
  readonly maxOutputBytes?: number
}

export const shellDefaults = Object.freeze({ timeoutMs: 60_000, maxOutputBytes: 65_536, conversation: false })

/**
 * Runs a command with the event as JSON on standard input, and reads what it prints as an outcome. It prints nothing: it has
 * no opinion. It exits with 2: that is a no, and what it wrote to standard error is why. It exits with anything else but 0,
 * is killed, takes too long or prints what is no outcome: it has failed, which is a no of a guard.
 */
export function shell(options: ShellOptions): Action {
  const run = commandOf(options)
  checkShellOptions(options)
  const { cwd = '.', env = {}, passEnv = [] } = options
  const { maxOutputBytes, conversation } = { ...shellDefaults, ...options }
  const folder = resolve(cwd)
  const label = `shell:${options.command ?? options.args!.join(' ')}`
  return action({
    kind: 'shell',
    label,
    async perform(ctx, { signal, timeoutMs = shellDefaults.timeoutMs }) {
      const passed = Object.fromEntries(passEnv.map((name) => [name, process.env[name]]))
      const result = await runProcess(run, {
        cwd: folder,
        env: minimalEnvironment({ ...passed, ...env, HOOKLOOP_TRIGGER: ctx.trigger }, { cwd: folder }),
        input: `${eventText(ctx, { conversation })}\n`,
        timeoutMs,
        signal,
        output: { head: maxOutputBytes, tail: 1_024 },
      })
      return readOutcome(answerOf(result, { label, timeoutMs, trigger: ctx.trigger }), ctx, 'shell')
    },
  })
}

function commandOf({ command, args, ...rest }: ShellOptions): Command {
  if ((command === undefined) === (args === undefined)) {
    throw invalidOption('shell', 'it needs either "command" or "args"', rest)
  }
  if (args !== undefined) {
    const isArgv = isTexts(args) && args.length > 0 && args[0] !== ''
    if (isArgv) return args
    throw invalidOption('shell', '"args" must be a program and its arguments, as texts', args)
  }
  if (typeof command === 'string' && command.trim() !== '') return { shell: 'sh', line: command }
  throw invalidOption('shell', '"command" must be a line for a shell', command)
}

/** They may come from a file. */
function checkShellOptions(options: ShellOptions): void {
  const names = ['command', 'args', 'cwd', 'env', 'passEnv', 'conversation', 'maxOutputBytes']
  checkOptions('shell', options, names)
  const { cwd = '.', env = {}, passEnv = [], conversation = false, maxOutputBytes = 1 } = options
  const refuse = (why: string, value: unknown): never => {
    throw invalidOption('shell', why, value)
  }
  if (typeof cwd !== 'string' || cwd === '') refuse('"cwd" must be a folder', cwd)
  if (!isJsonObject(env) || !isTexts(Object.values(env))) refuse('"env" must be names and their texts', env)
  if (!isTexts(passEnv)) refuse('"passEnv" must be a list of names', passEnv)
  const hijacks = [...Object.keys(env), ...passEnv].find(isInjectionVariable)
  if (hijacks !== undefined) refuse(`"${hijacks}" would run something before the command does`, hijacks)
  if (typeof conversation !== 'boolean') refuse('"conversation" must be true or false', conversation)
  if (!Number.isSafeInteger(maxOutputBytes) || maxOutputBytes < 1) {
    refuse('"maxOutputBytes" must be a whole number from 1 up', maxOutputBytes)
  }
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
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

function failed(label: string, how: string): AgentError {
  return new AgentError('HOOK_FAILED', `"${label}" ${how.replace(/\.$/, '')}.`)
}
