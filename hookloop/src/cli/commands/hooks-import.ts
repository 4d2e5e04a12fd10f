import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { importHooks } from '../../hook-files/claude/import/import-hooks.ts'
import { readSettings } from '../../hook-files/claude/load/read-settings.ts'
import { describeProblem } from '../../hook-files/list-hooks.ts'
import { count } from '../terminal/amounts.ts'
import { colorsFor } from '../terminal/colors.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { jsonText } from '../terminal/json-lines.ts'
import type { Place } from '../cli-context.ts'
import { printable } from '../terminal/printable.ts'
import { UsageError } from '../usage-error.ts'
import { placeOf } from './dir-option.ts'

export type HooksImportFlags = {
  readonly dir?: string
  readonly output?: string
  readonly user?: boolean
  readonly force?: boolean
  readonly json?: boolean
}

/** `hookloop hooks import`: turns the hooks of `.claude/settings.json` into a file of ours, and says what is gained. */
export function hooksImport(flags: HooksImportFlags, place: Place): ExitCode {
  const { settings: places, problem } = placeOf(flags.dir)
  const { dir } = places
  const settings = readSettings({ ...places, ...(flags.user !== true && { home: false }) })
  const file = flags.output ?? join(dir, '.hookloop', 'hooks.json')
  const { entries, ...told } = importHooks(settings.groups, rootOf(file, dir))
  const problems = [...(problem === undefined ? [] : [problem]), ...settings.problems.map(describeProblem)]
  const content = {
    $schema: schemaFrom(file === '-' ? join(dir, '.hookloop') : dirname(resolve(file)), dir),
    hooks: entries,
  }
  if (flags.output === '-') {
    place.out.write(`${JSON.stringify(content, undefined, 2)}\n`)
    place.err.write(lists({ ...told, gained: [], problems }, { ...place, out: place.err }))
    return problems.length > 0 ? exitCodes.failed : exitCodes.completed
  }
  if (entries.length > 0) write(file, `${JSON.stringify(content, undefined, 2)}\n`, flags.force === true)
  const report = { file, hooks: entries.length, ...told, problems }
  place.out.write(flags.json === true ? `${jsonText(report)}\n` : words(report, place))
  return problems.length > 0 ? exitCodes.failed : exitCodes.completed
}

/** The folder whose hooks a file has. */
function rootOf(file: string, dir: string): string {
  if (file === '-') return dir
  const folder = dirname(resolve(file))
  return basename(folder) === '.hookloop' ? dirname(folder) : folder
}

/** Where an editor finds the schema: it reads the path as one from the folder of the file. */
function schemaFrom(folder: string, dir: string): string {
  const path = relative(folder, join(dir, 'node_modules', 'hookloop', 'hooks.schema.json')).replaceAll('\\', '/')
  return path.startsWith('.') ? path : `./${path}`
}

function write(file: string, text: string, force: boolean): void {
  if (existsSync(file) && !force)
    throw new UsageError(`${file} is there already. Write over it with --force, or elsewhere with -o.`)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

type Report = {
  readonly file: string
  readonly hooks: number
  readonly leftOut: readonly string[]
  readonly gained: readonly string[]
  readonly differs: readonly string[]
  readonly problems: readonly string[]
}

function words(report: Report, place: Place): string {
  const { file, hooks, problems, leftOut } = report
  const { bold, dim } = colorsFor(place.out, place.env)
  if (hooks === 0) {
    const none =
      leftOut.length === 0 && problems.length === 0 ? 'There are no hooks' : 'Nothing was written of the hooks'
    return `${none} of Claude Code here.\n${lists({ ...report, gained: [] }, place)}`
  }
  return `${[
    `${bold(count(hooks, 'hook'))} ${hooks === 1 ? 'is' : 'are'} in ${printable(file)}.`,
    `${lists(report, place)}They also stand where they were, and would run twice: take them out there.`,
    dim(`Look at them and trust them with: ${place.command} trust`),
  ].join('\n')}\n`
}

function lists(
  { leftOut, gained, differs, problems }: Pick<Report, 'leftOut' | 'gained' | 'differs' | 'problems'>,
  { out, env }: Place,
): string {
  const { bold, yellow, red } = colorsFor(out, env)
  const list = (title: string, lines: readonly string[]): readonly string[] =>
    lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${printable(line)}`)]
  const all = [
    ...list(bold('Gained:'), gained),
    ...list(yellow('Different:'), differs),
    ...list(yellow('Left out:'), leftOut),
    ...list(red('Not understood:'), problems),
  ]
  return all.map((line) => `${line}\n`).join('')
}
