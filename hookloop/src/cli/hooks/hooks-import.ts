import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { importHooks } from '../../config/claude/import-hooks.ts'
import { readSettings } from '../../config/claude/settings.ts'
import { colorsFor } from '../terminal/colors.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { jsonText } from '../terminal/json-lines.ts'
import type { Place } from '../place.ts'
import { printable } from '../terminal/printable.ts'
import { UsageError } from '../usage-error.ts'

export type HooksImportFlags = {
  readonly dir?: string
  readonly output?: string
  readonly user?: boolean
  readonly force?: boolean
  readonly json?: boolean
}

/** `hookloop hooks import`: turns the hooks of `.claude/settings.json` into a file of ours, and says what is gained. */
export function hooksImport(flags: HooksImportFlags, place: Place): ExitCode {
  const dir = resolve(flags.dir ?? '.')
  const settings = readSettings({ dir, ...(flags.user !== true && { home: false }) })
  const { entries, leftOut, gained } = importHooks(settings.groups)
  const problems = settings.problems.map(({ source, where, message }) => `${source.file} ${where}: ${message}`)
  const file = flags.output ?? join(dir, '.hookloop', 'hooks.json')
  const content = { $schema: 'hookloop/hooks.schema.json', hooks: entries }
  if (flags.output === '-') {
    place.out.write(`${JSON.stringify(content, undefined, 2)}\n`)
    return exitCodes.completed
  }
  if (entries.length > 0) write(file, `${JSON.stringify(content, undefined, 2)}\n`, flags.force === true)
  const report = { file, hooks: entries.length, leftOut, gained, problems }
  place.out.write(flags.json === true ? `${jsonText(report)}\n` : words(report, place))
  return problems.length > 0 ? exitCodes.failed : exitCodes.completed
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
  readonly problems: readonly string[]
}

function words({ file, hooks, leftOut, gained, problems }: Report, { out, env, command }: Place): string {
  const { bold, yellow, red, dim } = colorsFor(out, env)
  const list = (title: string, lines: readonly string[]): readonly string[] =>
    lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${printable(line)}`)]
  if (hooks === 0 && leftOut.length === 0) return 'There are no hooks of Claude Code here.\n'
  return `${[
    `${bold(String(hooks))} hooks are in ${printable(file)}.`,
    ...list(bold('Gained:'), gained),
    ...list(yellow('Left out:'), leftOut),
    ...list(red('Not understood:'), problems),
    dim(`Look at them and trust them with: ${command} trust`),
  ].join('\n')}\n`
}
