import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { Capability } from '../agent/capability.ts'
import { checkKnown, invalidOption } from '../agent/options.ts'
import type { JsonObject } from '../data/json.ts'
import { AgentError } from '../errors.ts'
import { readHookFile, type FileHook, type FileSource, type HookMaking } from './hook-file.ts'
import { invalid } from './read-document.ts'
import { fingerprint, scriptsIn, TrustStore, type Fingerprint, type TrustStatus } from './trust.ts'

export type ProjectHooksOptions = {
  /** The project: where `.hookloop/` is. */
  readonly dir: string
  /** The folder of the user's own hooks; false: they are not read. */
  readonly home?: string | false
  readonly plugins?: readonly string[]
  /** Who says which files of the project may run. `'all'`: whoever wrote this line has looked at them. */
  readonly trust?: TrustStore | 'all'
  /** What to do about hooks of the project that are not trusted: leave them out and say so, or refuse to begin. */
  readonly untrusted?: 'leaveOut' | 'refuse'
}

/** What was found: hooks that apply, and files that were left out. */
export type FoundHooks = {
  readonly hooks: readonly FileHook[]
  readonly untrusted: readonly (Fingerprint & { readonly status: TrustStatus })[]
}

const names = ['hooks.json', 'hooks.jsonc', 'hooks.yaml', 'hooks.yml']

/**
 * The hooks of `.hookloop/hooks.json` (`.jsonc`, `.yaml`) of the user, the project and its plugins, in this order. A later
 * file can add hooks; nothing in it can take a guard of an earlier one away.
 */
export function projectHooks(options: ProjectHooksOptions): Capability {
  const { hooks, untrusted } = findHooks(options)
  if (untrusted.length > 0 && options.untrusted === 'refuse') {
    const files = untrusted.map(({ path }) => path).join(', ')
    throw new AgentError('CONFIG_UNTRUSTED', `Nobody has trusted ${files} as it is. Look at it with: hookloop trust`, {
      value: files,
    })
  }
  return {
    name: 'projectHooks',
    hooks: hooks.map(({ hook }) => hook),
    notes: untrusted.map(({ path, status }) => {
      const how = status === 'changed' ? 'not what was trusted' : 'not trusted'
      return `${path} is ${how}: its hooks do not run. Look at them with: hookloop trust`
    }),
  }
}

export function findHooks(options: ProjectHooksOptions): FoundHooks {
  checkKnown('projectHooks', options, ['dir', 'home', 'plugins', 'trust', 'untrusted'])
  if (typeof options.dir !== 'string' || options.dir === '') {
    throw invalidOption('projectHooks', '"dir" must be the folder of a project', options.dir)
  }
  const { home = defaultHome(), plugins = [], trust = new TrustStore() } = options
  const dir = resolve(options.dir)
  const own = home === false ? [] : readFolder(home, 'user', { cwd: dir })
  const folders = [join(dir, '.hookloop'), ...plugins.map((plugin) => join(plugin, '.hookloop'))]
  const read = folders.map((folder, i) => ({ folder, kind: i === 0 ? ('project' as const) : ('plugin' as const) }))
  const untrusted = new Map<string, Fingerprint & { readonly status: TrustStatus }>()
  const theirs = read.flatMap(({ folder, kind }) => {
    const config = configIn(folder)
    if (config === undefined) return []
    const text = readFileSync(config.path, 'utf8')
    const doubts = trust === 'all' ? [] : doubtful([config], trust)
    if (doubts.length > 0) {
      for (const doubt of doubts) untrusted.set(doubt.path, doubt)
      return [] // not a byte of it is read before somebody has
    }
    const hooks = readHookFile(text, { kind, file: config.path }, { cwd: dirname(folder) })
    const scripts = hooks.flatMap((each) => scriptsOf(each, dirname(folder)))
    const changed = trust === 'all' ? [] : doubtful(scripts, trust)
    for (const doubt of changed) untrusted.set(doubt.path, doubt)
    return changed.length > 0 ? [] : hooks
  })
  return { hooks: [...own, ...theirs], untrusted: [...untrusted.values()] }
}

function doubtful(
  files: readonly Fingerprint[],
  trust: TrustStore,
): readonly (Fingerprint & { status: TrustStatus })[] {
  return files.map((file) => ({ ...file, status: trust.statusOf(file) })).filter(({ status }) => status !== 'trusted')
}

/** Every file of a project that has a say in what its hooks run. */
export function hookFilesOf(dir: string): readonly Fingerprint[] {
  const folder = join(resolve(dir), '.hookloop')
  const config = configIn(folder)
  if (config === undefined) return []
  const hooks = readHookFile(
    readFileSync(config.path, 'utf8'),
    { kind: 'project', file: config.path },
    { cwd: dirname(folder) },
  )
  return [config, ...hooks.flatMap((each) => scriptsOf(each, dirname(folder)))]
}

/** The scripts that a hook names. */
export function scriptsOf({ entry }: FileHook, dir: string): readonly Fingerprint[] {
  const given = entry['shell'] ?? entry['claude']
  const options = (typeof given === 'string' ? { command: given } : (given ?? {})) as JsonObject
  const { command, args } = options
  const words = Array.isArray(args) ? args.filter((each) => typeof each === 'string') : []
  const line = [...(typeof command === 'string' ? [command] : []), ...words.map((word) => `"${word}"`)].join(' ')
  return line === '' ? [] : scriptsIn(line, { dir })
}

function readFolder(folder: string, kind: FileSource['kind'], making: HookMaking): readonly FileHook[] {
  const config = configIn(folder)
  return config === undefined
    ? []
    : readHookFile(readFileSync(config.path, 'utf8'), { kind, file: config.path }, making)
}

/** The one file of hooks in a folder. Two of them would leave open which counts. */
function configIn(folder: string): Fingerprint | undefined {
  const found = names.map((name) => fingerprint(join(folder, name))).filter((print) => print !== undefined)
  if (found.length <= 1) return found[0]
  throw invalid(
    folder,
    undefined,
    `there are several files of hooks: ${found.map(({ path }) => path).join(', ')}. Keep one`,
  )
}

function defaultHome(): string {
  return join(process.env['XDG_CONFIG_HOME'] ?? join(homedir(), '.config'), 'hookloop')
}
