import { resolve } from 'node:path'
import { guard, tool, type Capability, type Hook, type Tool } from '../../plugin.ts'
import { invalidOption, readOptions } from '../../values/check-options.ts'
import { revealInvisible } from '../../system/sanitize-text.ts'
import { checkExists } from '../../system/files/check-exists.ts'
import { executableProblem } from '../../system/processes/executable-problem.ts'
import { isInjectionVariable } from '../../system/processes/minimal-environment.ts'
import { commandJudge, type CommandVerdict } from './policy/judge-command.ts'
import { isPlainFile, mentionsGit, programsInRepository } from './repository.ts'
import { runCommand, type Shell, type CommandContext } from './run-command.ts'
import { chooseSandbox, describeSandbox, type SandboxChoice } from './sandbox.ts'

/** Options of `bash`. */
export type BashOptions = {
  /** Commands that run without approval, such as `git log`. Default none. */
  readonly allow?: readonly string[]
  /** Commands that are always blocked; overrides everything. Default none. */
  readonly block?: readonly string[]
  /** Commands that need approval even if `allow` covers them. Default none. Commands without a rule need approval too. */
  readonly ask?: readonly string[]
  /** The working directory of every command; it must exist. Default `.`, that of this process. */
  readonly cwd?: string
  /** The time a command may take. Default 120,000. */
  readonly timeoutMs?: number
  /** The longest time that the argument `timeout_ms` can request. Default 600,000. */
  readonly maxTimeoutMs?: number
  /** Environment variables, in addition to the few that every command gets. Default none. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Whether commands run in a sandbox. Default `auto`: if this machine has one. */
  readonly sandbox?: SandboxChoice
  /** Whether commands without a rule run without approval in a sandbox. No effect without one. Default false. */
  readonly allowInSandbox?: boolean
  /** How many characters of the start of long output the model gets. Default 8,192. */
  readonly headChars?: number
  /** How many characters of its end the model gets. Default 24,576. */
  readonly tailChars?: number
}

export const bashDefaults = Object.freeze({
  allow: Object.freeze([]) as readonly string[],
  block: Object.freeze([]) as readonly string[],
  ask: Object.freeze([]) as readonly string[],
  cwd: '.',
  timeoutMs: 120_000,
  maxTimeoutMs: 600_000,
  env: Object.freeze({}) as Readonly<Record<string, string | undefined>>,
  sandbox: 'auto' as SandboxChoice,
  allowInSandbox: false,
  headChars: 8_192,
  tailChars: 24_576,
}) satisfies Required<BashOptions>

/** Above the guards of an application: these cannot override a block. */
const PRIORITY = 200

/**
 * A tool that runs shell commands, and the guards that judge each command before it runs.
 *
 * @example
 * createAgent({ model, use: [bash({ allow: ['ls', 'git log'], block: ['rm'] }), approval('suspend')] })
 */
export function bash(options: BashOptions = {}): Capability {
  const policy = toPolicy(options)
  const { allow, block, ask, headChars, tailChars } = policy
  const cwd = resolve(policy.cwd)
  checkExists('bash', 'cwd', cwd, 'folder')
  const judge = commandJudge({ allow, block, ask })
  const shell = findShell()
  const sandbox = chooseSandbox(policy.sandbox, cwd)
  const context: CommandContext = { cwd, shell, env: policy.env, sandbox, window: { headChars, tailChars } }
  const made = bashTool(policy, context)
  return {
    name: 'bash',
    tools: [made],
    hooks: [
      policyGuard(made, judge, { sandbox, shell, allowInSandbox: policy.allowInSandbox }),
      repositoryGuard(made, judge, cwd),
    ],
    notes: [`bash: ${describeSandbox(sandbox)}`, ...(shell.isBash ? [] : [withoutBash])],
  }
}

type Policy = Required<BashOptions>
type BashCall = { readonly command: string; readonly timeout_ms?: number }

function bashTool(policy: Policy, context: CommandContext): Tool {
  const { timeoutMs, maxTimeoutMs } = policy
  return tool({
    name: 'bash',
    description: describe(policy, context),
    input: {
      type: 'object',
      properties: {
        command: { type: 'string', minLength: 1, description: 'The command line.' },
        timeout_ms: {
          type: 'integer',
          minimum: 1,
          maximum: maxTimeoutMs,
          description: `The timeout. Default ${timeoutMs}.`,
        },
      },
      required: ['command'],
      additionalProperties: false,
    },
    maxOutputChars: policy.headChars + policy.tailChars + 1_000,
    execute: (args, run) => {
      const { command, timeout_ms: requested } = args as BashCall
      return runCommand({ command, timeoutMs: requested ?? timeoutMs }, context, run)
    },
  })
}

/** Judges the command as it will be run, also if a hook has rewritten it. */
function policyGuard(
  made: Tool,
  judge: (command: string) => CommandVerdict,
  { sandbox, shell, allowInSandbox }: Pick<CommandContext, 'sandbox' | 'shell'> & Pick<Policy, 'allowInSandbox'>,
): Hook {
  return guard(
    'beforeToolUse',
    (ctx) => {
      const { command } = ctx.toolCall.args as BashCall
      const judged = judge(command)
      const { verdict } = judged
      const reason = revealInvisible(judged.reason) // it quotes the command
      const shown = `Run this command?\n${describeCommand(command)}\n(${reason})`
      if (verdict === 'block') return ctx.block(reason)
      if (verdict === 'allow') return shell.isBash ? ctx.allow(reason) : ctx.ask(`${shown} ${withoutBash}`)
      if (allowInSandbox && sandbox.active && isWithoutRule(judged))
        return ctx.allow('No rule is about it, and it runs in a sandbox.')
      return ctx.ask(shown, { byDefault: isWithoutRule(judged) })
    },
    { name: 'bash.policy', tool: made, priority: PRIORITY },
  )
}

const SHOWN_CHARS = 4_000

/** A command for an approver, with invisible characters escaped. Of a long one the start and the end, where something may hide. */
function describeCommand(command: string): string {
  const exact = revealInvisible(command)
  if (exact.length <= SHOWN_CHARS) return exact
  const half = SHOWN_CHARS / 2
  const missing = exact.length - 2 * half
  return `${exact.slice(0, half)}\n[… ${missing} more characters …]\n${exact.slice(-half)}`
}

/**
 * Whether the command was understood completely and no rule is about any part of it. If there is a doubt about the text, the
 * decisive rule belongs to none of its commands.
 */
function isWithoutRule({ commands, rule: decisive }: CommandVerdict): boolean {
  const isDoubted = !commands.some(({ rule }) => rule === decisive)
  return !isDoubted && commands.every(({ argv, rule }) => argv !== null && !rule.startsWith('ask "'))
}

/**
 * What the text of a command does not show: a repository can name programs that git runs, even for commands that only read, and a
 * file that a redirection writes can be a link.
 */
function repositoryGuard(made: Tool, judge: (command: string) => CommandVerdict, cwd: string): Hook {
  return guard(
    'beforeToolUse',
    (ctx) => {
      const { command } = ctx.toolCall.args as BashCall
      const { commands, verdict } = judge(command)
      // `command {gi,commi}t` has the name only in what it becomes.
      const isGit = [command, ...commands.map(({ text }) => text)].some(mentionsGit)
      const programs = isGit ? programsInRepository(command, cwd) : []
      if (programs.length > 0)
        return ctx.ask(`Git would run programs from the settings of this repository (${programs.join(', ')}).`)
      const writes = verdict === 'allow' ? commands.flatMap((each) => each.writes ?? []) : []
      const special = writes.find((path) => !isPlainFile(cwd, path))
      return special === undefined ? ctx : ctx.ask(`It would write to ${special}, which is a link or a program.`)
    },
    { name: 'bash.repository', tool: made, priority: PRIORITY, effect: true }, // it reads files
  )
}

const withoutBash =
  'There is no bash on this machine: commands run in sh, which reads some of them differently, so each needs approval.'

function describe(policy: Policy, { cwd, sandbox, window }: CommandContext): string {
  const list = (rules: readonly string[]): string => rules.map((rule) => `\`${rule}\``).join(', ')
  return [
    'Runs a command in bash and returns its exit code and output.',
    `Each call is a new shell in ${cwd}: variables, functions and \`cd\` do not persist. It has no input, and its background processes are ended with it.`,
    `The timeout is ${policy.timeoutMs} ms, or \`timeout_ms\` up to ${policy.maxTimeoutMs}. Of long output the first ${window.headChars} and the last ${window.tailChars} characters are shown.`,
    ...(policy.allow.length > 0 ? [`Allowed: ${list(policy.allow)}, with ordinary options.`] : []),
    ...(policy.block.length > 0 ? [`Blocked: ${list(policy.block)}.`] : []),
    'All other commands need approval by the user.',
    describeSandbox(sandbox),
  ].join(' ')
}

function toPolicy(options: BashOptions): Policy {
  const policy = readOptions('bash', options, bashDefaults)
  if (policy.timeoutMs > policy.maxTimeoutMs)
    throw invalidOption('bash', '"timeoutMs" cannot be longer than "maxTimeoutMs"', policy.timeoutMs)
  if (typeof policy.allowInSandbox !== 'boolean')
    throw invalidOption('bash', '"allowInSandbox" must be true or false', policy.allowInSandbox)
  checkVariables(policy.env)
  return policy
}

function checkVariables(env: Policy['env']): void {
  const name = Object.keys(env).find(isInjectionVariable)
  if (name !== undefined) throw invalidOption('bash', `env: "${name}" would run code before the command`, name)
}

function findShell(): Shell {
  const path = ['/bin/bash', '/usr/bin/bash', '/usr/local/bin/bash', '/opt/homebrew/bin/bash'].find(
    (path) => executableProblem(path, { cwd: '/', path: undefined }) === undefined,
  )
  return path === undefined ? { path: '/bin/sh', isBash: false } : { path, isBash: true }
}
