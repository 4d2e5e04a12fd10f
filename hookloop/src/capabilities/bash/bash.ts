import { accessSync, constants } from 'node:fs'
import { resolve } from 'node:path'
import type { Capability } from '../../agent/capability.ts'
import { checkOptions, definedOptions, invalidOption } from '../../agent/check-options.ts'
import { tool, type Tool } from '../../agent/tool.ts'
import { guard, type Hook } from '../../hooks/hook.ts'
import { revealInvisible } from '../../system/sanitize-text.ts'
import { isInjectionVariable } from '../../system/processes/minimal-environment.ts'
import { describeCommand } from './describe-command.ts'
import { commandJudge, type CommandVerdict } from './judge-command.ts'
import { mentionsGit, programsInRepository } from './repository.ts'
import { runCommand, type Shell, type Surroundings } from './run-command.ts'
import { chooseSandbox, describeSandbox, type SandboxChoice } from './sandbox.ts'

export type BashOptions = {
  /** Commands that run without a question, such as `git log`. Default none. */
  readonly allow?: readonly string[]
  /** Commands that never run. */
  readonly deny?: readonly string[]
  /** Commands that a person is always asked about. Whatever no rule speaks of is asked about as well. */
  readonly ask?: readonly string[]
  /** Where every command starts. Default: where the program was started. */
  readonly cwd?: string
  /** How long a command may take if it does not say. */
  readonly timeoutMs?: number
  /** The longest time that a command can ask for. */
  readonly maxTimeoutMs?: number
  /** Variables beside the few that every command gets. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Whether commands run in a sandbox: when there is one, always, never, or with what boundary. */
  readonly sandbox?: SandboxChoice
  /** Whether what no rule speaks of runs without a question as long as it runs in a sandbox. */
  readonly allowInSandbox?: boolean
  /** Characters shown of the beginning of long output. */
  readonly headChars?: number
  /** Characters shown of its end. */
  readonly tailChars?: number
}

export const bashPolicy = Object.freeze({
  allow: Object.freeze([]) as readonly string[],
  deny: Object.freeze([]) as readonly string[],
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

/** Above the guards of an application: what a policy refuses is refused whatever they say. */
const PRIORITY = 200

/** A tool that runs commands, and the policy that judges each of them before it does. */
export function bash(options: BashOptions = {}): Capability {
  const policy = toPolicy(options)
  const { allow, deny, ask, headChars, tailChars } = policy
  const judge = commandJudge({ allow, deny, ask })
  const cwd = resolve(policy.cwd)
  const shell = findShell()
  const sandbox = chooseSandbox(policy.sandbox, cwd)
  const surroundings: Surroundings = { cwd, shell, env: policy.env, sandbox, shown: { headChars, tailChars } }
  const made = bashTool(policy, surroundings)
  return {
    name: 'bash',
    tools: [made],
    hooks: [
      policyGuard(made, judge, { sandbox, shell, allowInSandbox: policy.allowInSandbox }),
      repositoryGuard(made, cwd),
    ],
    notes: [`bash: ${describeSandbox(sandbox)}`, ...(shell.isBash ? [] : [withoutBash])],
  }
}

type Policy = Required<BashOptions>
/** What the schema of the tool lets through. */
type BashCall = { readonly command: string; readonly timeout_ms?: number }

function bashTool(policy: Policy, surroundings: Surroundings): Tool {
  const { timeoutMs, maxTimeoutMs } = policy
  return tool({
    name: 'bash',
    description: describe(policy, surroundings),
    input: {
      type: 'object',
      properties: {
        command: { type: 'string', minLength: 1, description: 'The command, as it would be typed into a shell.' },
        timeout_ms: {
          type: 'integer',
          minimum: 1,
          maximum: maxTimeoutMs,
          description: `How long it may take. Without it ${timeoutMs}.`,
        },
      },
      required: ['command'],
      additionalProperties: false,
    },
    maxOutputChars: policy.headChars + policy.tailChars + 1_000,
    execute: (args, run) => {
      const { command, timeout_ms: asked } = args as BashCall
      return runCommand({ command, timeoutMs: asked ?? timeoutMs }, surroundings, run)
    },
  })
}

/** Judges the command as it will be run, whoever rewrote it. */
function policyGuard(
  made: Tool,
  judge: (command: string) => CommandVerdict,
  { sandbox, shell, allowInSandbox }: Pick<Surroundings, 'sandbox' | 'shell'> & Pick<Policy, 'allowInSandbox'>,
): Hook {
  return guard(
    'beforeToolUse',
    (ctx) => {
      const { command } = ctx.toolCall.args as BashCall
      const judged = judge(command)
      const { verdict } = judged
      const reason = revealInvisible(judged.reason) // it quotes the command
      const shown = `Run this command?\n${describeCommand(command)}\n(${reason})`
      if (verdict === 'deny') return ctx.block(reason)
      if (verdict === 'allow') return shell.isBash ? ctx.allow(reason) : ctx.ask(`${shown} ${withoutBash}`)
      if (allowInSandbox && sandbox.active && isOpen(judged))
        return ctx.allow('No rule speaks of it, and it is in a sandbox.')
      return ctx.ask(shown)
    },
    { name: 'bash.policy', tool: made, priority: PRIORITY },
  )
}

/**
 * Whether all of it could be read and no rule speaks of any command in it: what is hidden might be what a rule is about. A
 * text that is doubted as a whole was decided about by none of its commands.
 */
function isOpen({ commands, rule: decisive }: CommandVerdict): boolean {
  const isDoubted = !commands.some(({ rule }) => rule === decisive)
  return !isDoubted && commands.every(({ argv, rule }) => argv !== null && !rule.startsWith('ask "'))
}

/** A repository can name programs that git runs, also for commands that only read. What it says is no part of the command. */
function repositoryGuard(made: Tool, cwd: string): Hook {
  return guard(
    'beforeToolUse',
    (ctx) => {
      const { command } = ctx.toolCall.args as BashCall
      if (!mentionsGit(command)) return ctx
      const programs = programsInRepository(command, cwd)
      if (programs.length === 0) return ctx
      return ctx.ask(`Git would run programs that this repository names (${programs.join(', ')}).`)
    },
    { name: 'bash.repository', tool: made, priority: PRIORITY, effect: true }, // it looks at files
  )
}

const withoutBash =
  'There is no bash on this machine: commands run in sh, which reads some of them differently, so each is asked about.'

function describe(policy: Policy, { cwd, sandbox, shown }: Surroundings): string {
  const list = (rules: readonly string[]): string => rules.map((rule) => `\`${rule}\``).join(', ')
  return [
    'Runs a command in bash and returns its exit code and output.',
    `Each call is a new shell in ${cwd}: variables, functions and \`cd\` do not last. Nothing can be typed into it, and whatever it leaves in the background is ended when it ends.`,
    `It may take ${policy.timeoutMs} ms, or up to ${policy.maxTimeoutMs} if \`timeout_ms\` says so. Of long output ${shown.headChars} characters of the beginning and ${shown.tailChars} of the end are shown.`,
    ...(policy.allow.length > 0
      ? [`Without a question: ${list(policy.allow)}, if everything in the command is plain text.`]
      : []),
    ...(policy.deny.length > 0 ? [`Never: ${list(policy.deny)}.`] : []),
    'Everything else needs the consent of a person.',
    describeSandbox(sandbox),
  ].join(' ')
}

function toPolicy(options: BashOptions): Policy {
  if (typeof options !== 'object' || options === null)
    throw invalidOption('bash', 'its options must be an object', options)
  checkOptions('bash', options, Object.keys(bashPolicy))
  const policy: Policy = { ...bashPolicy, ...definedOptions(options) }
  for (const name of ['timeoutMs', 'maxTimeoutMs', 'headChars', 'tailChars'] as const) {
    if (!(Number.isInteger(policy[name]) && policy[name] > 0))
      throw invalidOption('bash', `"${name}" must be a whole number above 0`, policy[name])
  }
  if (policy.timeoutMs > policy.maxTimeoutMs)
    throw invalidOption('bash', '"timeoutMs" cannot be longer than "maxTimeoutMs"', policy.timeoutMs)
  if (typeof policy.cwd !== 'string') throw invalidOption('bash', '"cwd" must be a path', policy.cwd)
  if (typeof policy.allowInSandbox !== 'boolean')
    throw invalidOption('bash', '"allowInSandbox" must be true or false', policy.allowInSandbox)
  checkVariables(policy.env)
  return policy
}

function checkVariables(env: unknown): void {
  if (typeof env !== 'object' || env === null || Array.isArray(env))
    throw invalidOption('bash', '"env" must be an object of variables', env)
  for (const [name, value] of Object.entries(env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
      throw invalidOption('bash', `env: "${name}" is no name of a variable`, name)
    if (isInjectionVariable(name))
      throw invalidOption('bash', `env: "${name}" would run something before the command`, name)
    if (value !== undefined && (typeof value !== 'string' || value.includes('\0')))
      throw invalidOption('bash', `env: the value of "${name}" must be a text`, value)
  }
}

function findShell(): Shell {
  const path = ['/bin/bash', '/usr/bin/bash', '/usr/local/bin/bash', '/opt/homebrew/bin/bash'].find(isExecutable)
  return path === undefined ? { path: '/bin/sh', isBash: false } : { path, isBash: true }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
