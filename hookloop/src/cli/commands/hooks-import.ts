import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { importHooks } from '../../hook-files/claude/import/import-hooks.ts'
import { readSettings } from '../../hook-files/claude/load/read-settings.ts'
import { describeProblem } from '../../hook-files/claude/load/handlers.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { jsonOption } from '../options.ts'
import { count } from '../terminal/amounts.ts'
import { colorsFor, type Colors } from '../terminal/colors.ts'
import { escapeInJson } from '../../system/sanitize-text.ts'
import { jsonText } from '../terminal/json.ts'
import { printable } from '../terminal/printable.ts'
import { UsageError } from '../usage-error.ts'
import { resolveDir } from './dir-option.ts'

type HooksImportFlags = {
  readonly dir?: string
  readonly output?: string
  readonly user?: boolean
  readonly force?: boolean
  readonly json?: boolean
}

export const command: CommandDefinition = {
  description:
    'Convert the hooks in .claude/settings.json to .hookloop/hooks.json, and report what is gained, what is different ' +
    'and what was left out.',
  examples: ['hookloop hooks import', 'hookloop hooks import --dir ./my-plugin -o -'],
  configure: (command) =>
    jsonOption(command)
      .option('--dir <path>', 'project, plugin, or one file of either (default: the current folder)')
      .option('--user', 'include the hooks in your own settings')
      .option('-o, --output <file>', 'output file; "-" prints it (default: .hookloop/hooks.json)')
      .option('--force', 'overwrite an existing file'),
  run: hooksImport,
}

function hooksImport(flags: HooksImportFlags, { out, err, env, command }: CliContext): ExitCode {
  const { settings: places, problem } = resolveDir(flags.dir)
  const { dir } = places
  const settings = readSettings({ ...places, ...(flags.user !== true && { home: false }) })
  const file = flags.output ?? join(dir, '.hookloop', 'hooks.json')
  const { entries, ...notes } = importHooks(settings.groups, rootOf(file, dir))
  const problems = [...(problem === undefined ? [] : [problem]), ...settings.problems.map(describeProblem)]
  const report = { file, hooks: entries.length, ...notes, problems }
  const $schema = schemaFrom(file === '-' ? join(dir, '.hookloop') : dirname(resolve(file)), dir)
  const content = `${JSON.stringify({ $schema, hooks: entries }, undefined, 2)}\n`
  if (file === '-') {
    out.write(escapeInJson(content))
    err.write(lists({ ...report, gained: [] }, colorsFor(err, env)))
  } else {
    if (entries.length > 0) write(file, content, flags.force === true)
    out.write(
      flags.json === true ? `${jsonText(report)}\n` : reportText(report, { colors: colorsFor(out, env), command }),
    )
  }
  return problems.length > 0 ? exitCodes.failed : exitCodes.completed
}

/** The project folder that a hooks file belongs to. */
function rootOf(file: string, dir: string): string {
  if (file === '-') return dir
  const folder = dirname(resolve(file))
  return basename(folder) === '.hookloop' ? dirname(folder) : folder
}

/** The path of the schema, relative to the folder of the file, as editors read it. */
function schemaFrom(folder: string, dir: string): string {
  const path = relative(folder, join(dir, 'node_modules', 'hookloop', 'hooks.schema.json')).replaceAll('\\', '/')
  return path.startsWith('.') ? path : `./${path}`
}

function write(file: string, text: string, force: boolean): void {
  if (existsSync(file) && !force) {
    throw new UsageError(`${file} already exists. Overwrite it with --force, or write another file with -o.`)
  }
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

type Report = Omit<ReturnType<typeof importHooks>, 'entries'> & {
  readonly file: string
  readonly hooks: number
  readonly problems: readonly string[]
}

function reportText(report: Report, { colors, command }: { colors: Colors; command: string }): string {
  const { file, hooks, problems, leftOut } = report
  if (hooks === 0) {
    const isNone = leftOut.length === 0 && problems.length === 0
    const text = isNone ? 'No Claude Code hooks found.' : 'No Claude Code hook was imported.'
    return `${text}\n${lists({ ...report, gained: [] }, colors)}`
  }
  return `${[
    `Wrote ${colors.bold(count(hooks, 'hook'))} to ${printable(file)}.`,
    `${lists(report, colors)}The originals still apply, so these hooks run twice: remove the originals.`,
    colors.dim(`Review and trust the new hooks with: ${command} trust`),
  ].join('\n')}\n`
}

function lists({ leftOut, gained, differs, problems }: Report, { bold, yellow, red }: Colors): string {
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
