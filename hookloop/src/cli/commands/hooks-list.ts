import { listHooks, type ListedHook } from '../../hook-files/list-hooks.ts'
import { TrustStore } from '../../hook-files/trust/trust-store.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { checkHooks, type HookCheck } from '../hooks-check/check-hooks.ts'
import { jsonOption } from '../options.ts'
import { count } from '../terminal/amounts.ts'
import { colorsFor, type Colors } from '../terminal/colors.ts'
import { jsonText } from '../terminal/json.ts'
import { oneLine, printable } from '../terminal/printable.ts'
import { relativePath, relativePaths } from '../terminal/relative-paths.ts'
import { table } from '../terminal/table.ts'
import { resolveDir } from './dir-option.ts'

type HooksListFlags = {
  readonly dir?: string
  readonly user: boolean
  readonly json?: boolean
  /** Run each hook once, and report what is wrong. */
  readonly check?: boolean
  /** The agent whose tools the hooks should match. */
  readonly agent?: string
}

export const command: CommandDefinition = {
  description:
    'List the hooks in files of a project and your own, by trigger, in the order in which they fire. ' +
    'Exits with 1 if a file or an entry cannot be read, or --check finds a problem.',
  examples: ['hookloop hooks list', 'hookloop hooks list --check --agent agent.ts'],
  configure: (command) =>
    jsonOption(command)
      .option('--dir <path>', 'folder of a project or a plugin (default: the current folder)')
      .option('--no-user', 'leave out your own hooks')
      .option('--check', 'run each trusted hook once with an example event, and report what is wrong')
      .option('-a, --agent <file>', 'with --check: agent module whose tools the hooks should match'),
  run: hooksList,
}

async function hooksList(flags: HooksListFlags, { out, err, env, command }: CliContext): Promise<ExitCode> {
  const { settings } = resolveDir(flags.dir)
  const { dir } = settings
  const own = flags.user ? {} : { home: false as const, claudeHome: false as const }
  const places = { ...settings, trust: new TrustStore(), ...own }
  const listed = listHooks(places)
  const { hooks, notes } = listed
  const { agent } = flags
  const check = flags.check === true ? await checkHooks({ ...places, listed, agent }) : undefined
  const problems = check?.problems ?? listed.problems
  if (flags.json === true) out.write(`${jsonText({ hooks, problems, notes, checked: check?.checked })}\n`)
  else {
    const lines = hooks.length === 0 ? ['No hooks found in files.'] : sections(hooks, dir, colorsFor(out, env))
    if (check !== undefined) lines.push('', ...checkText(check, colorsFor(out, env)))
    out.write(`${lines.join('\n')}\n`)
    const { red, yellow } = colorsFor(err, env)
    for (const each of problems) err.write(`${red('!')} ${printable(relativePaths(each, dir))}\n`)
    for (const each of notes) err.write(`${yellow('!')} ${printable(relativePaths(each, dir))}\n`)
    const untrusted = hooks.filter(isUntrusted).length
    if (untrusted > 0) {
      const which = untrusted === hooks.length ? 'These hooks' : 'Untrusted and changed hooks'
      err.write(`${yellow('!')} ${which} do not run until you trust them. Review them with: ${command} trust\n`)
    }
  }
  return problems.length > 0 ? exitCodes.failed : exitCodes.completed
}

function sections(hooks: readonly ListedHook[], dir: string, colors: Colors): string[] {
  const byTrigger = Map.groupBy(hooks, ({ trigger }) => trigger ?? 'never fires in Hookloop')
  return [...byTrigger].flatMap(([trigger, these], i) => [
    ...(i === 0 ? [] : ['']),
    colors.bold(trigger),
    table(these.map((hook) => row(hook, dir, colors))),
  ])
}

function checkText({ checked }: HookCheck, { dim, green, red }: Colors): readonly string[] {
  const run = checked.filter(({ status }) => status !== 'notRun')
  const failed = run.filter(({ status }) => status === 'fails').length
  const mark = failed === 0 ? green('✔') : red('✖')
  const unrun = checked.filter(({ status }) => status === 'notRun')
  return [
    ...unrun.map(({ name, why }) => dim(`– ${oneLine(name, 60)} was not run: ${printable(why ?? '')}`)),
    `${mark} ${count(run.length, 'hook')} ${run.length === 1 ? 'was' : 'were'} run once, ${failed === 0 ? 'none' : failed} failed.`,
  ]
}

function row(hook: ListedHook, dir: string, colors: Colors): readonly string[] {
  const { mode, name, runs, matcher, source, trust, event, kind, owner } = hook
  return [
    `  ${mode}`,
    oneLine(event ?? name, 40),
    oneLine(matcher ?? '', 30),
    oneLine(runs, 60),
    owner === undefined ? '' : `${kind} ${oneLine(owner, 30)}`,
    colors.dim(printable(relativePath(source, dir))),
    trust === 'own' ? '' : isUntrusted(hook) ? colors.yellow(trust) : trust,
  ]
}

function isUntrusted({ trust }: ListedHook): boolean {
  return trust === 'untrusted' || trust === 'changed'
}
