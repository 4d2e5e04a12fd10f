import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { diff } from 'node:util'
import { filesToTrust, listHooks, type ListedHook } from '../../hook-files/list-hooks.ts'
import { hashFiles, type Fingerprint } from '../../hook-files/trust/fingerprint.ts'
import { trustedByHash, TrustStore, type TrustStatus } from '../../hook-files/trust/trust-store.ts'
import { count } from '../terminal/amounts.ts'
import { colorsFor } from '../terminal/colors.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { jsonText } from '../terminal/json.ts'
import { isInteractive, type CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { jsonOption } from '../options.ts'
import { exact, printable } from '../terminal/printable.ts'
import { relativePath, relativePaths } from '../terminal/relative-paths.ts'
import { UsageError } from '../usage-error.ts'

type TrustFlags = {
  readonly yes?: boolean
  /** Trust the files if they have this hash. */
  readonly trust?: string
  readonly revoke?: boolean
  readonly json?: boolean
}

type ReviewedFile = Fingerprint & { readonly status: TrustStatus; readonly changes?: readonly string[] }

export const command: CommandDefinition = {
  description:
    'Show what the hooks of a project would run and what has changed, and ask whether to trust the files as they are now. ' +
    'Untrusted hooks do not run.',
  examples: ['hookloop trust', 'hookloop trust ./project --yes', 'hookloop trust --revoke'],
  configure: (command) =>
    jsonOption(command)
      .argument('[folder]', 'project (default: the current folder)')
      .option('-y, --yes', 'trust the files without asking')
      .option('--trust <hash>', 'trust the files without asking, if they have this hash')
      .option('--revoke', 'trust no file of the project any more'),
  run: trust,
}

export async function trust(folder: string | undefined, flags: TrustFlags, cli: CliContext): Promise<ExitCode> {
  const dir = resolve(folder ?? '.')
  // The files of a folder that was deleted can still be revoked.
  if (flags.revoke !== true && statSync(dir, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new UsageError(`Folder not found: ${folder ?? '.'}`)
  const store = new TrustStore()
  store.checkOutside(dir)
  if (flags.revoke === true) {
    const forgotten = store.forget(dir)
    const text = `${count(forgotten, 'file')} in ${printable(dir)} ${forgotten === 1 ? 'is' : 'are'} no longer trusted.`
    print(cli, flags, { revoked: forgotten }, forgotten === 0 ? `No file in ${printable(dir)} was trusted.` : text)
    return exitCodes.completed
  }
  const { red } = colorsFor(cli.err, cli.env)
  const found = filesToTrust(dir)
  const emptied = store.changedFiles(dir).filter(({ path }) => found.every((each) => each.path !== path))
  const unreadable = emptied.find(({ hash }) => hash === '') // it can be neither reviewed nor trusted
  if (unreadable !== undefined) {
    throw new UsageError(
      `${printable(relativePath(unreadable.path, dir))} was trusted and cannot be read any more. ` +
        `Fix it, or remove it and run: ${cli.command} trust --revoke`,
    )
  }
  const files = [...found, ...emptied].map((file) => review(file, store))
  const { hooks, problems } = listHooks({ dir, home: false, claudeHome: false, trust: store })
  if (files.length === 0) {
    print(cli, flags, { dir, files: [], hooks: [], problems, trusted: true }, 'No hooks found in files.')
    if (flags.json !== true)
      for (const problem of problems) cli.err.write(`${red('!')} ${printable(relativePaths(problem, dir))}\n`)
    return problems.length > 0 ? exitCodes.failed : exitCodes.completed
  }
  const hash = hashFiles(found, dir)
  if (flags.json !== true) show({ files, hooks, problems, dir, hash }, cli)
  const isNew = files.some(({ status }) => status !== 'trusted')
  const agreed = isNew && (await isAgreed(flags, { found, dir, cli }))
  if (agreed) {
    if (hashFiles(filesToTrust(dir), dir) !== hash)
      throw new UsageError('The files changed during the review. Review them again.')
    store.trust([...found, ...emptied])
  }
  const trusted = agreed || !isNew
  const text = trusted ? 'Trusted.' : 'Not trusted: these hooks do not run.'
  print(cli, flags, { dir, hash, files, hooks, problems, trusted }, text)
  return trusted ? exitCodes.completed : exitCodes.stopped
}

function review(file: Fingerprint, store: TrustStore): ReviewedFile {
  const status = store.statusOf(file)
  const before = status === 'changed' ? store.trustedText(file) : undefined
  return {
    ...file,
    status,
    ...(before !== undefined && { changes: lineDiff(before, readFileSync(file.path, 'utf8')) }),
  }
}

/** The comparison takes quadratic time. */
const MAX_DIFF_LINES = 2_000

/** The lines that differ between two texts: `-` was removed, `+` was added. */
function lineDiff(before: string, after: string): readonly string[] {
  const [removed, added] = [before.split('\n'), after.split('\n')]
  if (removed.length > MAX_DIFF_LINES || added.length > MAX_DIFF_LINES) {
    return [...removed.map((line) => `- ${line}`), ...added.map((line) => `+ ${line}`)]
  }
  return diff(removed, added).flatMap(([kind, line]) => (kind === 0 ? [] : [`${kind === 1 ? '-' : '+'} ${line}`]))
}

type Shown = {
  readonly files: readonly ReviewedFile[]
  readonly hooks: readonly ListedHook[]
  readonly problems: readonly string[]
  readonly dir: string
  readonly hash: string
}

const MAX_CHANGES = 60

function show({ files, hooks, problems, dir, hash }: Shown, { out, env }: CliContext): void {
  const { bold, dim, yellow, red } = colorsFor(out, env)
  const changesOf = ({ changes = [] }: ReviewedFile): readonly string[] => [
    ...changes.slice(0, MAX_CHANGES).map((line) => `    ${exact(line)}`),
    ...(changes.length > MAX_CHANGES ? [`    … ${count(changes.length - MAX_CHANGES, 'more line')}`] : []),
  ]
  const lines = [
    bold('These hooks would run with your user rights:'),
    ...groupByHook(hooks).flatMap((hook) => [
      `  ${dim(exact(titleOf(hook)))}`,
      ...exact(hook.runs)
        .split('\n')
        .map((line) => `    ${line}`),
      ...(hook.more === undefined ? [] : [dim(`    with ${exact(JSON.stringify(hook.more))}`)]),
      ...(hook.sends === undefined ? [] : [yellow(`    sends ${exact(hook.sends.join(', '))}`)]),
    ]),
    bold('Files:'),
    ...files.flatMap((file) => {
      const { path, status } = file
      const mark = {
        trusted: dim('trusted'),
        changed: yellow('changed since it was trusted'),
        untrusted: yellow('new'),
      }
      return [
        `  ${printable(relativePath(path, dir))} ${dim(file.hash.slice(0, 12))} ${mark[status]}`,
        ...changesOf(file),
      ]
    }),
    ...problems.map((problem) => red(printable(relativePaths(problem, dir)))),
    dim(`hash ${hash}`),
  ]
  out.write(`${lines.join('\n')}\n`)
}

type GroupedHook = ListedHook & { readonly on: readonly string[] }

/** A hook with several triggers is shown once. */
function groupByHook(hooks: readonly ListedHook[]): readonly GroupedHook[] {
  const same = Map.groupBy(hooks, ({ trigger: _trigger, ...rest }) => JSON.stringify(rest))
  return [...same.values()].map((these) => ({ ...these[0]!, on: these.map(({ trigger }) => trigger ?? 'no trigger') }))
}

function titleOf({ event, mode, name, matcher, kind, owner, on }: GroupedHook): string {
  const what = event === undefined ? `${mode} "${name}" on ${on.join(', ')}` : `Claude Code ${event}`
  const tools = matcher === undefined ? '' : ` for ${matcher}`
  return `${what}${tools}${owner === undefined ? '' : `, from the ${kind} ${owner}`}`
}

type Asking = { readonly found: readonly Fingerprint[]; readonly dir: string; readonly cli: CliContext }

async function isAgreed({ yes, trust: hash, json }: TrustFlags, { found, dir, cli }: Asking): Promise<boolean> {
  if (hash !== undefined) {
    if (trustedByHash(found, { dir, hash }) !== undefined) return true
    throw new UsageError('--trust: the files have another hash. Review them again.')
  }
  if (yes === true) return true
  if (json === true) return false
  if (!isInteractive(cli)) {
    throw new UsageError(`Review needs a terminal. To trust the files without asking, run: ${cli.command} trust --yes`)
  }
  const reader = createInterface({ input: cli.stdin, output: cli.err })
  try {
    return /^\s*y(es)?\s*$/i.test(await reader.question('Trust these files? [y/N] '))
  } catch (thrown) {
    if (!(thrown instanceof Error && thrown.name === 'AbortError')) throw thrown
    cli.err.write('\n') // Ctrl-C and Ctrl-D mean no
    return false
  } finally {
    reader.close()
  }
}

function print({ out }: CliContext, { json }: TrustFlags, value: object, text: string): void {
  out.write(`${json === true ? jsonText(value) : text}\n`)
}
