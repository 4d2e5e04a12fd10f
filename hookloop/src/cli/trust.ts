import { createInterface } from 'node:readline/promises'
import { relative, resolve } from 'node:path'
import { filesToTrust, listHooks, type ListedHook } from '../config/list-hooks.ts'
import { realPath, TrustStore, type Fingerprint, type TrustStatus } from '../config/trust.ts'
import { count } from './amounts.ts'
import { colorsFor } from './colors.ts'
import { exitCodes, type ExitCode } from './exit-codes.ts'
import { jsonText } from './json-lines.ts'
import { hasPerson, type Place } from './place.ts'
import { exact, printable } from './printable.ts'
import { UsageError } from './usage-error.ts'

export type TrustFlags = {
  readonly dir?: string
  readonly yes?: boolean
  readonly revoke?: boolean
  readonly json?: boolean
}

type Looked = Fingerprint & { readonly status: TrustStatus }

/** `hookloop trust`: shows what hooks of a project would run, and trusts the files as they are now if somebody says so. */
export async function trust(folder: string | undefined, flags: TrustFlags, place: Place): Promise<ExitCode> {
  const dir = resolve(folder ?? flags.dir ?? '.')
  const store = new TrustStore()
  if (flags.revoke === true) {
    const forgotten = store.forget(dir)
    say(place, flags, { revoked: forgotten }, `${count(forgotten, 'file')} below ${printable(dir)} no longer trusted.`)
    return exitCodes.completed
  }
  const files = filesToTrust(dir).map((file): Looked => ({ ...file, status: store.statusOf(file) }))
  const { hooks, problems } = listHooks({ dir, home: false, claudeHome: false, trust: store })
  if (files.length === 0) {
    say(place, flags, { files: [], hooks: [], trusted: true }, 'There are no hooks in files here.')
    return exitCodes.completed
  }
  if (flags.json !== true) show({ files, hooks, problems, dir }, place)
  const isNew = files.some(({ status }) => status !== 'trusted')
  const agreed = isNew && (flags.yes === true || (await asked(flags, place)))
  if (agreed) store.trust(files)
  const trusted = agreed || !isNew
  say(
    place,
    flags,
    { dir, files, hooks, problems, trusted },
    trusted ? 'Trusted, as they are now.' : 'Not trusted: none of it runs.',
  )
  return trusted ? exitCodes.completed : exitCodes.stopped
}

type Shown = {
  readonly files: readonly Looked[]
  readonly hooks: readonly ListedHook[]
  readonly problems: readonly string[]
  readonly dir: string
}

function show({ files, hooks, problems, dir }: Shown, { out, env }: Place): void {
  const { bold, dim, yellow, red } = colorsFor(out, env)
  const lines = [
    bold('These hooks would run, with all your rights:'),
    ...hooks.map(({ trigger, event, mode, runs, matcher }) => {
      const where = [event ?? trigger, matcher].filter(Boolean).join(' ')
      return `  ${dim(`${mode} ${exact(where)}`)}\n    ${exact(runs)}`
    }),
    bold('They are in these files:'),
    ...files.map(({ path, status, hash }) => {
      const mark =
        status === 'trusted' ? '' : ` ${yellow(status === 'changed' ? 'changed since it was trusted' : 'new')}`
      return `  ${printable(relative(realPath(dir), path))} ${dim(hash.slice(0, 12))}${mark}`
    }),
    ...problems.map((problem) => red(printable(problem))),
  ]
  out.write(`${lines.join('\n')}\n`)
}

async function asked({ json }: TrustFlags, place: Place): Promise<boolean> {
  if (json === true || !hasPerson(place)) {
    if (json === true) return false
    throw new UsageError(`Nobody is here to look at them. Say so yourself with: ${place.command} trust --yes`)
  }
  const reader = createInterface({ input: place.stdin, output: place.err })
  try {
    return /^\s*y(es)?\s*$/i.test(await reader.question('Trust them? [y/N] '))
  } finally {
    reader.close()
  }
}

function say({ out }: Place, { json }: TrustFlags, value: object, words: string): void {
  out.write(`${json === true ? jsonText(value) : words}\n`)
}
