import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Use } from '../../core/agent/capability.ts'
import type { Json } from '../../values/json.ts'
import type { ToolExecution } from '../../core/state/tool-call.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { guards } from '../guards.ts'
import { bash, type BashOptions } from './bash.ts'

/** The policy for the security cases. Commands that it does not allow need approval, and there is no approver. */
export const casePolicy = {
  allow: ['ls', 'cat', 'echo', 'grep', 'find', 'sort', 'sed', 'true', 'git log', 'git status', 'git diff'],
  block: ['touch', 'rm', 'curl'],
} as const

export type Workspace = ReturnType<typeof createWorkspace>

/** A repository, a folder outside of it with a secret, a home folder, and the path of a marker file that must never exist (variable M). */
export function createWorkspace() {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-case-')))
  const [work, outside, home] = [join(root, 'w'), join(root, 'o'), join(root, 'h')]
  for (const folder of [work, outside, join(home, '.ssh')]) mkdirSync(folder, { recursive: true })
  const marker = join(outside, 'MARK')
  writeFileSync(join(outside, 'secret'), 'CANARY-7f3a\n')
  writeFileSync(join(home, '.ssh', 'id_rsa'), 'CANARY-SSH\n')
  writeFileSync(join(home, '.bashrc'), `touch ${marker}\n`)
  writeFileSync(join(work, 'a.txt'), 'a\n')
  git(work, 'init', '-q')
  git(work, 'add', '-A')
  git(work, 'commit', '-qm', 'first')
  writeFileSync(join(work, 'a.txt'), 'b\n')
  return {
    root,
    work,
    outside,
    home,
    marker,
    isMarked: () => existsSync(marker),
    unmark: () => rmSync(marker, { force: true }),
    git: (...args: string[]) => git(work, ...args),
    write: (path: string, text: string) => writeFileSync(join(work, path), text),
    read: (path: string) => readFileSync(join(work, path), 'utf8'),
    remove: () => rmSync(root, { recursive: true, force: true }),
    /** Runs commands one after the other with the real tool, inside a real run. */
    run: (commands: readonly string[], options: BashOptions = {}, use: readonly Use[] = []) =>
      runCommands(commands, {
        options: {
          ...casePolicy,
          sandbox: 'off',
          cwd: work,
          ...options,
          env: { M: marker, HOME: home, ...options.env },
        },
        use,
      }),
  }
}

/** The result of a call; the output of a command is always text. */
export type RanCommand = ToolExecution & { readonly output: string }

export async function runCommands(
  commands: readonly string[],
  { options, use = [] }: { readonly options: BashOptions; readonly use?: readonly Use[] },
): Promise<readonly RanCommand[]> {
  const toolCalls = commands.map((command) => ({ name: 'bash', args: { command } }))
  const agent = createAgent({
    model: scriptedModel([{ toolCalls }, 'Done.']),
    use: [bash(options), guards({ maxSteps: null, maxTokens: null, maxTimeMs: null }), ...use],
  })
  const run = await agent.run('Go.')
  const executions = [...(run.state.execution?.steps ?? [])].flatMap(({ toolExecutions }) => [...toolExecutions])
  return executions.map((execution) => ({ ...execution, output: textOf(execution.output) }))
}

function textOf(output: Json): string {
  if (typeof output !== 'string') throw new TypeError(`The output of a command is ${JSON.stringify(output)}.`)
  return output
}

function git(cwd: string, ...args: string[]): string {
  const who = [
    '-c',
    'user.name=a',
    '-c',
    'user.email=a@b.c',
    '-c',
    'core.fsmonitor=false',
    '-c',
    'core.hooksPath=/dev/null',
    '-c',
    'maintenance.auto=false', // newer versions of git tidy up in the background after a commit
    '-c',
    'gc.auto=0',
  ]
  return execFileSync('git', [...who, ...args], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}
