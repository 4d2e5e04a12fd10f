import { listHooks, type ListedHook } from '../../hook-files/list-hooks.ts'
import { TrustStore } from '../../hook-files/trust/trust-store.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { jsonOption } from '../options.ts'
import { colorsFor, type Colors } from '../terminal/colors.ts'
import { jsonText } from '../terminal/json.ts'
import { oneLine, printable } from '../terminal/printable.ts'
import { relativePath, relativePaths } from '../terminal/relative-paths.ts'
import { table } from '../terminal/table.ts'
import { resolveDir } from './dir-option.ts'

type HooksListFlags = { readonly dir?: string; readonly user: boolean; readonly json?: boolean }

export const command: CommandDefinition = {
  description:
    'List the hooks in files of a project and your own, by trigger, in the order in which they fire. ' +
    'Exits with 1 if a file or an entry cannot be read.',
  examples: ['hookloop hooks list', 'hookloop hooks list --dir ./my-plugin --no-user'],
  configure: (command) =>
    jsonOption(command)
      .option('--dir <path>', 'project, plugin, or one file of either (default: the current folder)')
      .option('--no-user', 'leave out your own hooks'),
  run: hooksList,
}

function hooksList(flags: HooksListFlags, { out, err, env, command }: CliContext): ExitCode {
  const { settings, problem } = resolveDir(flags.dir)
  const { dir } = settings
  const listed = listHooks({
    ...settings,
    trust: new TrustStore(),
    ...(!flags.user && { home: false, claudeHome: false }),
  })
  const { hooks, notes } = listed
  const problems = [...(problem === undefined ? [] : [problem]), ...listed.problems]
  if (flags.json === true) out.write(`${jsonText({ hooks, problems, notes })}\n`)
  else {
    const lines = hooks.length === 0 ? ['No hooks found in files.'] : sections(hooks, dir, colorsFor(out, env))
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

function sections(hooks: readonly ListedHook[], dir: string, colors: Colors): readonly string[] {
  const byTrigger = Map.groupBy(hooks, ({ trigger }) => trigger ?? 'never fires in Hookloop')
  return [...byTrigger].flatMap(([trigger, these], i) => [
    ...(i === 0 ? [] : ['']),
    colors.bold(trigger),
    table(these.map((hook) => row(hook, dir, colors))),
  ])
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
