import { readFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { trustedByHash } from '../../hook-files/trust/trusted-by-hash.ts'
import { filesToTrust, listHooks, type ListedHook } from '../../hook-files/list-hooks.ts'
import { hashFiles, realPath, type Fingerprint } from '../../hook-files/trust/fingerprint.ts'
import { TrustStore, type TrustStatus } from '../../hook-files/trust/trust-store.ts'
import { count } from '../terminal/amounts.ts'
import { colorsFor } from '../terminal/colors.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { jsonText } from '../terminal/json-lines.ts'
import { lineDiff } from '../terminal/line-diff.ts'
import { hasPerson, type Place } from '../cli-context.ts'
import { exact, printable } from '../terminal/printable.ts'
import { UsageError } from '../usage-error.ts'

export type TrustFlags = {
  readonly yes?: boolean
  /** Trust them if they have this hash, and not otherwise. */
  readonly trust?: string
  readonly revoke?: boolean
  readonly json?: boolean
}

type Looked = Fingerprint & { readonly status: TrustStatus; readonly changes?: readonly string[] }

/** `hookloop trust`: shows what hooks of a project would run, and trusts the files as they are now if somebody says so. */
export async function trust(folder: string | undefined, flags: TrustFlags, place: Place): Promise<ExitCode> {
  const dir = resolve(folder ?? '.')
  const store = new TrustStore()
  store.checkOutside(dir)
  if (flags.revoke === true) {
    const forgotten = store.forget(dir)
    const words = `${count(forgotten, 'file')} below ${printable(dir)} ${forgotten === 1 ? 'is' : 'are'} no longer trusted.`
    say(place, flags, { revoked: forgotten }, forgotten === 0 ? `Nothing below ${printable(dir)} was trusted.` : words)
    return exitCodes.completed
  }
  const { red } = colorsFor(place.err, place.env)
  const found = filesToTrust(dir)
  const emptied = store.changedFiles(dir).filter(({ path }) => found.every((each) => each.path !== path))
  refuseUnreadable(emptied, { dir, place })
  const files = [...found, ...emptied].map((file) => looked(file, store))
  const { hooks, problems } = listHooks({ dir, home: false, claudeHome: false, trust: store })
  if (files.length === 0) {
    say(place, flags, { dir, files: [], hooks: [], problems, trusted: true }, 'There are no hooks in files here.')
    if (flags.json !== true) for (const problem of problems) place.err.write(`${red('!')} ${printable(problem)}\n`)
    return problems.length > 0 ? exitCodes.failed : exitCodes.completed
  }
  const hash = hashFiles(found, dir)
  if (flags.json !== true) show({ files, hooks, problems, dir, hash }, place)
  const isNew = files.some(({ status }) => status !== 'trusted')
  const agreed = isNew && (await isAgreed(flags, { found, dir, place }))
  if (agreed) {
    if (hashFiles(filesToTrust(dir), dir) !== hash)
      throw new UsageError('They have changed while you looked. Look again.')
    store.trust([...found, ...emptied])
  }
  const trusted = agreed || !isNew
  const words = trusted ? 'Trusted, as they are now.' : 'Not trusted: none of it runs.'
  say(place, flags, { dir, hash, files, hooks, problems, trusted }, words)
  return trusted ? exitCodes.completed : exitCodes.stopped
}

/** What cannot be read cannot be looked at, and neither trusted. */
function refuseUnreadable(files: readonly Fingerprint[], { dir, place }: { dir: string; place: Place }): void {
  const [first] = files.filter(({ hash }) => hash === '')
  if (first === undefined) return
  const name = printable(relative(realPath(dir), first.path))
  throw new UsageError(
    `${name} was trusted and cannot be read any more. Mend it; or take it away, and say so with: ${place.command} trust --revoke`,
  )
}

function looked(file: Fingerprint, store: TrustStore): Looked {
  const status = store.statusOf(file)
  const before = status === 'changed' ? store.trustedText(file) : undefined
  return {
    ...file,
    status,
    ...(before !== undefined && { changes: lineDiff(before, readFileSync(file.path, 'utf8')) }),
  }
}

type Shown = {
  readonly files: readonly Looked[]
  readonly hooks: readonly ListedHook[]
  readonly problems: readonly string[]
  readonly dir: string
  readonly hash: string
}

const MAX_CHANGES = 60

function show({ files, hooks, problems, dir, hash }: Shown, { out, env }: Place): void {
  const { bold, dim, yellow, red } = colorsFor(out, env)
  const changesOf = ({ changes = [] }: Looked): readonly string[] => [
    ...changes.slice(0, MAX_CHANGES).map((line) => `    ${exact(line)}`),
    ...(changes.length > MAX_CHANGES ? [`    … ${count(changes.length - MAX_CHANGES, 'more line')}`] : []),
  ]
  const lines = [
    bold('These hooks would run, with all your rights:'),
    ...eachOnce(hooks).flatMap(({ runs, more, sends, ...hook }) => [
      `  ${dim(exact(whatIs(hook)))}`,
      ...exact(runs)
        .split('\n')
        .map((line) => `    ${line}`),
      ...(more === undefined ? [] : [dim(`    with ${exact(JSON.stringify(more))}`)]),
      ...(sends === undefined ? [] : [yellow(`    sends ${exact(sends.join(', '))}`)]),
    ]),
    bold('They are in these files:'),
    ...files.flatMap((file) => {
      const { path, status } = file
      const mark = {
        trusted: dim('trusted'),
        changed: yellow('changed since it was trusted'),
        untrusted: yellow('new'),
      }
      return [
        `  ${printable(relative(realPath(dir), path))} ${dim(file.hash.slice(0, 12))} ${mark[status]}`,
        ...changesOf(file),
      ]
    }),
    ...problems.map((problem) => red(printable(problem))),
    dim(`hash ${hash}`),
  ]
  out.write(`${lines.join('\n')}\n`)
}

/** A hook with several triggers, once. */
function eachOnce(hooks: readonly ListedHook[]): readonly (ListedHook & { readonly on: readonly string[] })[] {
  const same = Map.groupBy(hooks, ({ trigger: _trigger, ...rest }) => JSON.stringify(rest))
  return [...same.values()].map((these) => ({ ...these[0]!, on: these.map(({ trigger }) => trigger ?? 'never') }))
}

type Described = Pick<ListedHook, 'event' | 'mode' | 'name' | 'matcher' | 'kind' | 'owner'> & {
  readonly on: readonly string[]
}

function whatIs({ event, mode, name, matcher, kind, owner, on }: Described): string {
  const what = event === undefined ? `${mode} "${name}" at ${on.join(', ')}` : `${event} of Claude Code`
  const tools = matcher === undefined ? '' : ` for ${matcher}`
  return `${what}${tools}${owner === undefined ? '' : `, of the ${kind} ${owner}`}`
}

type Asking = { readonly found: readonly Fingerprint[]; readonly dir: string; readonly place: Place }

async function isAgreed({ yes, trust: hash, json }: TrustFlags, { found, dir, place }: Asking): Promise<boolean> {
  if (hash !== undefined) {
    if (trustedByHash(found, { dir, hash }) !== undefined) return true
    throw new UsageError('--trust: they have another hash. Look at them again.')
  }
  if (yes === true) return true
  if (json === true) return false
  if (!hasPerson(place)) {
    throw new UsageError(`Nobody is here to look at them. Say so yourself with: ${place.command} trust --yes`)
  }
  const reader = createInterface({ input: place.stdin, output: place.err })
  try {
    return /^\s*y(es)?\s*$/i.test(await reader.question('Trust them? [y/N] '))
  } catch (thrown) {
    if (!(thrown instanceof Error && thrown.name === 'AbortError')) throw thrown
    place.err.write('\n') // Ctrl-C and Ctrl-D are a no as well
    return false
  } finally {
    reader.close()
  }
}

function say({ out }: Place, { json }: TrustFlags, value: object, words: string): void {
  out.write(`${json === true ? jsonText(value) : words}\n`)
}
