import { basename, join, resolve } from 'node:path'
import { configFolder, homeFolder } from '../../system/files/user-folders.ts'
import type { Capability } from '../../core/agent/capability.ts'
import { checkOptions } from '../../values/check-options.ts'
import type { JsonObject } from '../../values/json.ts'
import { AgentError, clause, messageOf } from '../../errors.ts'
import { checkExists } from '../../system/files/check-exists.ts'
import { action, type Action } from '../../core/hooks/action.ts'
import type { HookOutcome } from '../../core/hooks/outcome.ts'
import { isInside, realPath, uniqueByPath, type Fingerprint } from '../trust/fingerprint.ts'
import { namedFiles } from '../trust/named-files.ts'
import { statusText, TrustStore, type UntrustedFile } from '../trust/trust-store.ts'
import { ownerIsActive, skillTracking } from '../active-owners.ts'
import { headAt, headField, headsIn, lineOfField, type Head } from '../heads.ts'
import { readConfig, type ConfigFile } from '../read-config.ts'
import { optionsOf, readHooks, type Allowed, type FileHook, type FileSource } from './hook-file.ts'
import type { ReadText } from '../../system/files/read-yaml.ts'
import { invalid, readDocument } from './read-document.ts'

/** Options of `projectHooks`. */
export type ProjectHooksOptions = {
  /** The project: the folder that contains `.hookloop/`. */
  readonly dir: string
  /** The folder of the user's own hooks. Default: `~/.config/hookloop`. `false`: they are not read. */
  readonly home?: string | false
  /** Folders of plugins, each with a `.hookloop/` folder or a hook file. Default none. */
  readonly plugins?: readonly string[]
  /** Folders of skills outside the project, or folders with hooks. Default none. */
  readonly skills?: readonly string[]
  /** Files of agents outside the project, or folders with hooks. Default none. */
  readonly agents?: readonly string[]
  /** The files that the user trusts. Default: the list of the user. `'all'`: the caller has read all files. */
  readonly trust?: TrustStore | 'all'
  /**
   * What to do with files that are not trusted. By default a new file is left out with a note, and a file that has changed
   * since it was trusted throws, because its hooks would be missing.
   */
  readonly untrusted?: 'leaveOut' | 'refuse'
  /** What hooks of other sources may do, in addition to what the user file allows. Default: nothing. */
  readonly allow?: { readonly env?: readonly string[]; readonly privateAddresses?: boolean }
}

/** `isConfig`: it is a hook file, and not a script that a hook runs. */
type UntrustedHookFile = UntrustedFile & { readonly isConfig: boolean }

export type FoundHooks = {
  readonly hooks: readonly FileHook[]
  readonly untrusted: readonly UntrustedHookFile[]
  readonly files: readonly Fingerprint[]
  /** Invalid observers, which are left out. */
  readonly mistakes: readonly AgentError[]
}

/**
 * The hooks of `.hookloop/hooks.json` (or `.jsonc`, `.yaml`) of the user, the project and its plugins, and those in the
 * front matter of its skills and agents, in this order. A later source can add hooks, but it cannot remove a guard of an
 * earlier one or allow what that blocks.
 *
 * @example
 * createAgent({ model, use: [projectHooks({ dir: process.cwd() })] })
 */
export function projectHooks(options: ProjectHooksOptions): Capability {
  const { hooks, untrusted, mistakes } = findHooks(options)
  const dir = resolve(options.dir)
  checkExists('projectHooks', 'dir', dir, 'folder')
  for (const option of ['plugins', 'skills', 'agents'] as const) {
    for (const each of options[option] ?? []) checkExists('projectHooks', option, resolve(dir, each), 'any')
  }
  const rejected = untrusted.filter(
    ({ status, isConfig }) =>
      options.untrusted === 'refuse' || (isConfig && status === 'changed' && options.untrusted === undefined),
  )
  if (rejected.length > 0) throw untrustedError(rejected)
  const problems = [
    ...untrusted.map((file) => `${describe(file)}. Review it with: hookloop trust`),
    ...mistakes.map(leftOutNote),
  ]
  const skills = hooks.flatMap(({ source: { kind, owner } }) => (kind === 'skill' ? (owner ?? []) : []))
  return {
    name: 'projectHooks',
    hooks: [...hooks.map(({ hook }) => hook), ...(skills.length > 0 ? [skillTracking(skills, 'projectHooks')] : [])],
    notes: problems,
    warnings: problems,
  }
}

function untrustedError(files: readonly UntrustedHookFile[]): AgentError {
  return new AgentError('CONFIG_UNTRUSTED', `${files.map(describe).join('; ')}. Review it with: hookloop trust`, {
    value: files.map(({ path }) => path),
  })
}

function describe(file: UntrustedHookFile): string {
  return `${file.path} ${statusText(file)}: ${file.isConfig ? 'its hooks do not run' : 'the hooks that run it block'}`
}

/** The note about an invalid observer. */
export function leftOutNote({ message }: AgentError): string {
  return `${message} It is an observer, so it is left out and the other hooks run.`
}

/** Every hook of a project, trusted or not, for display. Invalid entries are reported one by one. */
export function findAllHooks(
  options: Pick<ProjectHooksOptions, 'dir' | 'home'>,
  onMistake?: (mistake: AgentError) => void,
): FoundHooks {
  return findHooks({ ...options, trust: 'all', allow: { env: 'all', privateAddresses: true } }, onMistake)
}

type FindOptions = Omit<ProjectHooksOptions, 'allow'> & { readonly allow?: Partial<Allowed> }

export function findHooks(options: FindOptions, onMistake?: (mistake: AgentError) => void): FoundHooks {
  checkOptions('projectHooks', options, optionNames)
  const { trust = new TrustStore(), home = configFolder(), allow = {} } = options
  const dir = resolve(options.dir)
  if (trust !== 'all') trust.checkOutside(dir)
  const taken = new Set<string>()
  const untrusted: UntrustedHookFile[] = []
  const shared = { projectDir: dir, taken, onMistake }
  const own = home === false ? undefined : configIn(home, dir)
  if (own?.problem !== undefined) throw unusable(own)
  const unlimited: Allowed = { env: 'all', privateAddresses: true }
  const user =
    own &&
    readHooks(
      readDocument(own.text, own.path),
      { kind: 'user', file: own.path },
      { ...shared, cwd: dir, allowed: unlimited },
    )
  const allowed: Allowed = {
    env: allow.env === 'all' ? 'all' : [user?.allowed?.env ?? [], allow.env ?? []].flat(),
    privateAddresses: user?.allowed?.privateAddresses === true || allow.privateAddresses === true,
  }
  const files: Fingerprint[] = []
  const mistakes = [...(user?.mistakes ?? [])]
  const others = sourcesOf(options, dir).flatMap((source): readonly FileHook[] => {
    const { kind, root, config, isOwn = false } = source
    const file = { path: config.path, hash: config.hash }
    const isTrusted = trust === 'all' || isOwn
    const doubt = isTrusted ? [] : trust.untrusted([file])
    if (doubt.length > 0) {
      untrusted.push(...doubt.map((each) => ({ ...each, isConfig: true })))
      return [] // an untrusted file is not parsed
    }
    if (config.problem !== undefined) {
      if (onMistake === undefined) throw unusable(config)
      onMistake(unusable(config))
      return []
    }
    const read = documentOf(source)
    if (read === undefined) return []
    files.push(file)
    const untrustedScripts = (entry: JsonObject): readonly UntrustedHookFile[] =>
      isTrusted ? [] : trust.untrusted(scriptsOfEntry(entry, root)).map((each) => ({ ...each, isConfig: false }))
    const { hooks, mistakes: left } = readHooks(
      read.document,
      { kind, file: config.path, owner: read.owner },
      {
        ...shared,
        cwd: root,
        allowed,
        restrict: (made, entry) => restricted(made, { kind, untrusted: () => untrustedScripts(entry) }),
        when: read.owner === undefined ? undefined : ownerIsActive({ kind, name: read.owner }),
      },
    )
    untrusted.push(...hooks.flatMap(({ entry }) => untrustedScripts(entry)))
    mistakes.push(...left)
    return hooks
  })
  if (trust !== 'all') {
    const changed = trust.changedFiles(dir).filter(({ path }) => path.includes('/.hookloop/'))
    untrusted.push(...changed.map((file) => ({ ...file, status: 'changed' as const, isConfig: true })))
  }
  return { hooks: [...(user?.hooks ?? []), ...others], untrusted: uniqueByPath(untrusted), files, mistakes }
}

const optionNames = ['dir', 'home', 'plugins', 'skills', 'agents', 'trust', 'untrusted', 'allow']

type Kind = Exclude<FileSource['kind'], 'user'>

/** A file with hooks that is not the user file. */
type Source = {
  readonly kind: Kind
  readonly root: string
  readonly config: ConfigFile
  /** The name of the skill or agent, unless the hooks always apply. */
  readonly name?: string
  /** The hooks are in the front matter. */
  readonly isHead?: boolean
  /** It is in the home folder of the user, and always trusted. */
  readonly isOwn?: boolean
}

function sourcesOf(options: FindOptions, dir: string): readonly Source[] {
  const { plugins = [], skills = [], agents = [], home } = options
  const folder = (kind: Kind, place: string, name?: string): readonly Source[] => {
    const root = resolve(dir, place)
    const config = configOf(root, kind)
    return config === undefined ? [] : [{ kind, root, config, ...(name !== undefined && { name }) }]
  }
  const own = home === undefined ? headSources(homeFolder(), dir).map((each) => ({ ...each, isOwn: true })) : []
  const outside = own.filter(({ config }) => !isInside(realPath(dir), config.path)) // the project may be the home folder
  const heads = [...outside, ...headSources(dir, dir)]
  return [
    ...folder('project', dir),
    ...plugins.flatMap((each) => folder('plugin', each)),
    ...heads.filter(({ kind }) => kind === 'skill'),
    ...skills.flatMap((each) => {
      const file = join(resolve(dir, each), 'SKILL.md')
      const isSkill = readConfig(file, dir) !== undefined // otherwise its hooks always apply
      return [...headSource(headAt(file), dir), ...folder('skill', each, isSkill ? basename(each) : undefined)]
    }),
    ...heads.filter(({ kind }) => kind === 'agent'),
    ...agents.flatMap((each) => [
      ...headSource({ ...headAt(resolve(dir, each)), kind: 'agent' }, dir),
      ...folder('agent', each),
    ]),
  ]
}

function headSources(place: string, dir: string): readonly Source[] {
  const heads = ['.claude', '.hookloop'].flatMap((folder) => headsIn(join(place, folder)))
  return heads.flatMap((head) => headSource(head, dir))
}

/** A skill or an agent whose front matter has hooks. They are not parsed. */
function headSource({ kind, file, root, name }: Head, dir: string): readonly Source[] {
  const config = /\.md$/i.test(file) ? readConfig(file, dir) : undefined
  if (config === undefined || lineOfField(config.text, 'hookloop') === undefined) return []
  return [{ kind, root: resolve(root), config, name, isHead: true }]
}

/** The hooks of a file with their lines, and the name of the skill or agent. Undefined if there are none. */
function documentOf({
  config: { text, path },
  name,
  kind,
  isHead,
}: Source): { readonly document: ReadText; readonly owner: string | undefined } | undefined {
  if (isHead !== true) return { document: readDocument(text, path), owner: name }
  try {
    const head = headField(text, 'hookloop')
    const owner = kind === 'agent' ? (head?.name ?? name) : name
    return head && { document: { value: head.value, lineOf: () => head.line }, owner }
  } catch (error) {
    throw invalid(path, undefined, clause(messageOf(error)))
  }
}

/**
 * An action of a file that is not the user file. Its scripts are checked before each run: if one has changed, the action
 * fails. It cannot allow what needs approval, and its metadata keys have the kind of its source as a prefix.
 */
function restricted(
  made: Action,
  { kind, untrusted }: { readonly kind: Kind; readonly untrusted: () => readonly UntrustedHookFile[] },
): Action {
  return action({
    ...made,
    // Hooks of an agent apply where it runs, which is inside another agent.
    ...(kind === 'agent' && { inherited: true as const }),
    async perform(ctx, run) {
      const found = untrusted()
      if (found.length > 0) throw untrustedError(found)
      return tightened(await made.perform(ctx, run), kind)
    },
  })
}

function tightened({ decision, message, state, ...outcome }: HookOutcome, kind: Kind): HookOutcome {
  const metadata = state?.metadata
  const own = metadata && Object.fromEntries(Object.entries(metadata).map(([key, value]) => [`${kind}.${key}`, value]))
  return {
    ...outcome,
    ...(decision !== undefined && decision !== 'allow' && { decision, ...(message !== undefined && { message }) }),
    ...(state !== undefined && { state: own === undefined ? state : { ...state, metadata: own } }),
  }
}

/** The hook files of a project and the files that their commands name. For `TrustStore.trust`. */
export function hookFilesOf(dir: string): readonly Fingerprint[] {
  const { hooks, files } = findAllHooks({ dir, home: false })
  return uniqueByPath([...files, ...hooks.flatMap(({ entry, cwd }) => scriptsOfEntry(entry, cwd))])
}

/** The files of a project that the command of an entry names. */
export function scriptsOfEntry(entry: JsonObject, root: string): readonly Fingerprint[] {
  const { command, args, cwd, env } = optionsOf('shell', entry['shell'] ?? {})
  const own = (env ?? {}) as Readonly<Record<string, string>>
  const texts = [command ?? [], args ?? [], Object.values(own)].flat().filter((each) => typeof each === 'string')
  return namedFiles(texts, {
    dir: root,
    ...(typeof cwd === 'string' && { cwd: resolve(root, cwd) }),
    variables: own,
  })
}

function unusable({ path, problem }: ConfigFile): AgentError {
  return invalid(path, undefined, problem!)
}

/** The hook file of a folder. A link to a file outside the folder is an error: that file belongs to another source. */
function configOf(root: string, kind: Kind): ConfigFile | undefined {
  const folders = kind === 'project' ? [join(root, '.hookloop')] : [join(root, '.hookloop'), root]
  const config = folders.map((folder) => configIn(folder, root)).find((found) => found !== undefined)
  if (config?.problem?.includes('outside') === true) throw unusable(config)
  return config
}

const names = ['hooks.json', 'hooks.jsonc', 'hooks.yaml', 'hooks.yml']

function configIn(folder: string, root: string): ConfigFile | undefined {
  const found = names.flatMap((name) => readConfig(join(folder, name), root) ?? [])
  if (found.length <= 1) return found[0]
  const files = found.map(({ path }) => path).join(', ')
  throw invalid(folder, undefined, `there are several hook files: ${files}. Keep one of them`)
}
