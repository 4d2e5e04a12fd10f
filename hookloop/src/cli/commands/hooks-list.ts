import { relative } from 'node:path'
import { listHooks, type ListedHook } from '../../hook-files/list-hooks.ts'
import { TrustStore } from '../../hook-files/trust/trust-store.ts'
import { colorsFor, type Colors } from '../terminal/colors.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { jsonText } from '../terminal/json-lines.ts'
import type { Place } from '../cli-context.ts'
import { oneLine, printable } from '../terminal/printable.ts'
import { table, type Cell } from '../terminal/table.ts'
import { nearer } from '../terminal/relative-paths.ts'
import { placeOf } from './dir-option.ts'

export type HooksListFlags = { readonly dir?: string; readonly user: boolean; readonly json?: boolean }

/** `hookloop hooks list`: every hook that files bring, by trigger, in the order in which they fire. */
export function hooksList(flags: HooksListFlags, place: Place): ExitCode {
  const { settings, problem } = placeOf(flags.dir)
  const { dir } = settings
  const listed = listHooks({
    ...settings,
    trust: new TrustStore(),
    ...(!flags.user && { home: false, claudeHome: false }),
  })
  const { hooks } = listed
  const problems = [...(problem === undefined ? [] : [problem]), ...listed.problems]
  if (flags.json === true) {
    place.out.write(`${jsonText({ hooks, problems })}\n`)
  } else {
    const colors = colorsFor(place.out, place.env)
    const lines = hooks.length === 0 ? ['There are no hooks in files here.'] : sections(hooks, dir, colors)
    place.out.write(`${lines.join('\n')}\n`)
    const { red, yellow } = colorsFor(place.err, place.env)
    for (const problem of problems) place.err.write(`${red('!')} ${printable(nearer(problem, dir))}\n`)
    const doubtful = hooks.filter(({ trust }) => trust === 'untrusted' || trust === 'changed').length
    if (doubtful > 0) {
      const which = doubtful === hooks.length ? 'They do not run' : 'Those that are untrusted or changed do not run'
      place.err.write(`${yellow('!')} ${which} before somebody has looked at them: ${place.command} trust\n`)
    }
  }
  return problems.length > 0 ? exitCodes.failed : exitCodes.completed
}

function sections(hooks: readonly ListedHook[], dir: string, colors: Colors): readonly string[] {
  const byTrigger = Map.groupBy(hooks, ({ trigger }) => trigger ?? 'never fires here')
  return [...byTrigger].flatMap(([trigger, these], i) => [
    ...(i === 0 ? [] : ['']),
    colors.bold(trigger),
    table(these.map((hook) => row(hook, dir, colors))),
  ])
}

function row(
  { mode, name, runs, matcher, source, trust, event, kind, owner }: ListedHook,
  dir: string,
  colors: Colors,
): readonly Cell[] {
  const near = relative(dir, source)
  const isDoubtful = trust === 'untrusted' || trust === 'changed'
  return [
    { text: `  ${mode}` },
    { text: oneLine(event ?? name, 40) },
    { text: oneLine(matcher ?? '', 30) },
    { text: oneLine(runs, 60) },
    { text: owner === undefined ? '' : `${kind} ${oneLine(owner, 30)}` },
    { text: printable(near.startsWith('..') ? source : near), paint: colors.dim },
    { text: trust === 'own' ? '' : trust, ...(isDoubtful && { paint: colors.yellow }) },
  ]
}
