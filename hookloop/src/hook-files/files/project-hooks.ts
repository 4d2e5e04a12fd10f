import { homedir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import type { Capability } from '../../agent/capability.ts'
import { checkOptions, invalidOption } from '../../agent/check-options.ts'
import type { JsonObject } from '../../state/json.ts'
import { AgentError } from '../../errors.ts'
import { action, type Action } from '../../hooks/action.ts'
import type { HookOutcome } from '../../hooks/outcome.ts'
import { readHookFile, readHooks, type Allowed, type FileHook, type FileSource } from './hook-file.ts'
import { agentAt, hooksAtHead, isInForce, keepsSkills, ownersIn, skillAt, type HookOwner } from './hook-owners.ts'
import { namedScripts } from '../trust/named-scripts.ts'
import { invalid, readDocument } from './read-document.ts'
import { isInside, isThere, readPrinted, realPath, type Fingerprint } from '../trust/fingerprint.ts'
import { TrustStore, type TrustStatus } from '../trust/trust-store.ts'

export type ProjectHooksOptions = {
  /** The project: where `.hookloop/` is. */
  readonly dir: string
  /** The folder of the user's own hooks; false: they are not read. */
  readonly home?: string | false
  /** Folders of plugins, each with a `.hookloop/` or a file of hooks in it. */
  readonly plugins?: readonly string[]
  /** Skills and agents that are not in the project: the folder of a skill, the file of an agent, or a folder with hooks. */
  readonly skills?: readonly string[]
  readonly agents?: readonly string[]
  /** Who says which files may run. `'all'`: whoever wrote this line has looked at them. */
  readonly trust?: TrustStore | 'all'
  /**
   * What to do about files that are not trusted. Unless told, a file that is new is left out with a note, and one that was
   * trusted and has changed is refused: hooks that were there would be missing.
   */
  readonly untrusted?: 'leaveOut' | 'refuse'
  /** What hooks of others may do, beside what the user's own file says. */
  readonly allow?: Partial<Allowed>
}

/** A file that is not trusted as it is. */
export type UntrustedFile = Fingerprint & {
  readonly status: Exclude<TrustStatus, 'trusted'>
  readonly isConfig: boolean
}

/** What was found: hooks that apply, files that are not trusted, and the files that hooks stand in. */
export type FoundHooks = {
  readonly hooks: readonly FileHook[]
  readonly untrusted: readonly UntrustedFile[]
  readonly files: readonly Fingerprint[]
  /** Mistakes in entries that only watch, which are left out. */
  readonly mistakes: readonly AgentError[]
}

/**
 * The hooks of `.hookloop/hooks.json` (`.jsonc`, `.yaml`) of the user, the project and its plugins, and those at the head of
 * its skills and agents, in this order. A later file can add hooks; nothing in it can take a guard of an earlier one away, or allow what it would not.
 */
export function projectHooks(options: ProjectHooksOptions): Capability {
  const { hooks, untrusted, mistakes } = findHooks(options)
  const refused = untrusted.filter(
    ({ status, isConfig }) =>
      options.untrusted === 'refuse' || (isConfig && status === 'changed' && options.untrusted === undefined),
  )
  if (refused.length > 0) throw untrustedError(refused)
  return {
    name: 'projectHooks',
    hooks: [...hooks.map(({ hook }) => hook), ...keepsSkills(ownersOf(hooks))],
    notes: [
      ...untrusted.map((doubt) => `${wordsFor(doubt)}. Look at it with: hookloop trust`),
      ...mistakes.map(wordsForMistake),
    ],
  }
}

export function untrustedError(doubts: readonly UntrustedFile[]): AgentError {
  const words = doubts.map(wordsFor).join('; ')
  return new AgentError('CONFIG_UNTRUSTED', `${words}. Look at it with: hookloop trust`, {
    value: doubts.map(({ path }) => path),
  })
}

function wordsFor({ path, status, isConfig }: UntrustedFile): string {
  const how = status === 'changed' ? 'is not what was trusted' : 'is not trusted'
  return `${path} ${how}: ${isConfig ? 'its hooks do not run' : 'the hooks that name it say no'}`
}

/** A mistake in a hook that only watches, and what comes of it. */
export function wordsForMistake({ message }: AgentError): string {
  return `${message} It only watches, so it is left out and the others run.`
}

/** Whoever only looks is told of every mistake, and shown the rest. */
type Looking = { readonly onMistake?: (mistake: AgentError) => void }

export function findHooks(options: ProjectHooksOptions, { onMistake }: Looking = {}): FoundHooks {
  checkOptions('projectHooks', options, known)
  if (typeof options.dir !== 'string' || options.dir === '') {
    throw invalidOption('projectHooks', '"dir" must be the folder of a project', options.dir)
  }
  const { trust = new TrustStore(), home = defaultHome() } = options
  const dir = resolve(options.dir)
  if (trust !== 'all') trust.checkOutside(dir)
  const taken = new Set<string>()
  const untrusted: UntrustedFile[] = []
  const own = home === false ? undefined : configIn(home)
  if (own?.isUnreadable === true) throw invalid(own.path, undefined, 'it cannot be read')
  const user =
    own &&
    readHookFile(
      own.text,
      { kind: 'user', file: own.path },
      { ...unbound, cwd: dir, projectDir: dir, taken, onMistake },
    )
  const allowed: Allowed = {
    env: options.allow?.env === everyName ? everyName : [...(user?.allowed?.env ?? []), ...(options.allow?.env ?? [])],
    privateAddresses: user?.allowed?.privateAddresses === true || options.allow?.privateAddresses === true,
  }
  const files: Fingerprint[] = []
  const mistakes = [...(user?.mistakes ?? [])]
  const others = sourcesOf(options, dir).flatMap((source): readonly FileHook[] => {
    const { kind, root, config, owner, isOwn = false } = source
    const print = { path: config.path, hash: config.hash }
    const status = trust === 'all' || isOwn ? 'trusted' : trust.statusOf(print)
    if (status !== 'trusted') {
      untrusted.push({ ...print, status, isConfig: true })
      return [] // not a byte of it is read before somebody has
    }
    if (config.isUnreadable === true) {
      const problem = invalid(config.path, undefined, 'it cannot be read')
      if (onMistake === undefined) throw problem
      onMistake(problem)
      return []
    }
    const head = owner?.isHead === true ? hooksAtHead({ ...config, ...owner }) : undefined
    if (owner?.isHead === true && head === undefined) return []
    const document = head?.document ?? readDocument(config.text, config.path)
    const whose = owner && { kind: owner.kind, name: head?.name ?? owner.name }
    files.push(print)
    const check = (entry: JsonObject): readonly UntrustedFile[] =>
      trust === 'all' || isOwn ? [] : doubtful(scriptsOf(entry, root), trust)
    const restrict = (made: Action, entry: JsonObject): Action => held(made, { kind, doubts: () => check(entry) })
    const read = readHooks(
      document,
      { kind, file: config.path, ...(whose !== undefined && { owner: whose.name }) },
      { cwd: root, projectDir: dir, allowed, taken, restrict, onMistake, when: whose && isInForce(whose) },
    )
    untrusted.push(...read.hooks.flatMap(({ entry }) => check(entry)))
    mistakes.push(...read.mistakes)
    return read.hooks
  })
  if (trust !== 'all') {
    const changed = trust.changedIn(dir).filter(({ path }) => path.includes('/.hookloop/'))
    untrusted.push(...changed.map((print) => ({ ...print, status: 'changed' as const, isConfig: true })))
  }
  return { hooks: [...(user?.hooks ?? []), ...others], untrusted: uniqueByPath(untrusted), files, mistakes }
}

const known = ['dir', 'home', 'plugins', 'skills', 'agents', 'trust', 'untrusted', 'allow']
const unbound = { allowed: { env: [], privateAddresses: true } }

type Kind = Exclude<FileSource['kind'], 'user'>

/** A file of hooks that is not the user's own, and whose it is. */
type Source = {
  readonly kind: Kind
  /** The folder that its commands run in. */
  readonly root: string
  readonly config: Config
  /** Whose hooks they are; `isHead`: they stand at the head of the file that makes it one. */
  readonly owner?: Pick<HookOwner, 'kind' | 'name'> & { readonly isHead: boolean }
  /** It is the user's own, and needs no trust. */
  readonly isOwn?: boolean
}

function sourcesOf(options: ProjectHooksOptions, dir: string): readonly Source[] {
  const { plugins = [], skills = [], agents = [], home } = options
  const folders = (kind: Kind, roots: readonly string[]): readonly Source[] =>
    roots.flatMap((each) => {
      const root = resolve(dir, each)
      const config = configOf(root, kind)
      return config === undefined ? [] : [{ kind, root, config }]
    })
  const own = home === undefined ? ownSources(dir) : []
  const inside = [...own, ...ownersIn(dir).map(ownedBy)]
  const given = {
    skill: skills.flatMap((each) => skillsAt(resolve(dir, each))),
    agent: agents.flatMap((each) => [...agentAt(resolve(dir, each)).map(ownedBy), ...folders('agent', [each])]),
  }
  return [
    ...folders('project', [dir]),
    ...folders('plugin', plugins),
    ...inside.filter(({ kind }) => kind === 'skill'),
    ...given.skill,
    ...inside.filter(({ kind }) => kind === 'agent'),
    ...given.agent,
  ]
}

/** Skills and agents in the home folder. What lies in the project is the project's, also where work is done at home. */
function ownSources(dir: string): readonly Source[] {
  const outside = ownersIn(homedir()).filter(({ path }) => !isInside(realPath(dir), path))
  return outside.map((each) => ({ ...ownedBy(each), isOwn: true }))
}

function ownedBy({ kind, name, root, ...config }: HookOwner): Source {
  return { kind, root, config, owner: { kind, name, isHead: true } }
}

/** Hooks of a skill that stand at its head, and beside it. A folder that is no skill is never active, so its hooks always are. */
function skillsAt(root: string): readonly Source[] {
  const config = configOf(root, 'skill')
  const isSkill = readPrinted(join(root, 'SKILL.md')) !== undefined
  const owner = isSkill && { owner: { kind: 'skill' as const, name: basename(root), isHead: false } }
  const beside: readonly Source[] = config === undefined ? [] : [{ kind: 'skill', root, config, ...owner }]
  return [...skillAt(root).map(ownedBy), ...beside]
}

function ownersOf(hooks: readonly FileHook[]): readonly Pick<HookOwner, 'kind' | 'name'>[] {
  return hooks.flatMap(({ source: { kind, owner: name } }) =>
    name !== undefined && (kind === 'skill' || kind === 'agent') ? [{ kind, name }] : [],
  )
}

function doubtful(files: readonly Fingerprint[], trust: TrustStore): readonly UntrustedFile[] {
  return files.flatMap((file) => {
    const status = trust.statusOf(file)
    return status === 'trusted' ? [] : [{ ...file, status, isConfig: false }]
  })
}

export function uniqueByPath<T extends Fingerprint>(files: readonly T[]): readonly T[] {
  return [...new Map(files.map((file) => [file.path, file])).values()]
}

/**
 * An action of a file that is not the user's own. Its scripts are looked at again before each run: one that has changed does
 * not run, which is a no of a guard. And it may tighten: it never answers for the user, and writes under its own names.
 */
function held(
  made: Action,
  { kind, doubts }: { readonly kind: Kind; readonly doubts: () => readonly UntrustedFile[] },
): Action {
  return action({
    ...made,
    // Hooks of an agent are for where it works, which is inside of another.
    ...((made.kind === 'claude' || kind === 'agent') && { inherited: true as const }),
    async perform(ctx, how) {
      const found = doubts()
      if (found.length > 0) throw untrustedError(found)
      return tightened(await made.perform(ctx, how), kind)
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

/** Every file of a project that has a say in what its hooks run. */
export function hookFilesOf(dir: string): readonly Fingerprint[] {
  const allow = { privateAddresses: true, env: everyName }
  const { hooks, files } = findHooks({ dir, home: false, trust: 'all', allow })
  return uniqueByPath([...files, ...hooks.flatMap(({ entry, cwd }) => scriptsOf(entry, cwd))])
}

/** For those who only look: what is named there is allowed or not when it is to run. */
export const everyName: readonly string[] = Object.assign([], { includes: () => true })

/** The scripts that an entry names. */
export function scriptsOf(entry: JsonObject, root: string): readonly Fingerprint[] {
  const given = entry['shell'] ?? entry['claude']
  const options = (typeof given === 'string' ? { command: given } : (given ?? {})) as JsonObject
  const { command, args, cwd, pluginRoot } = options
  const words = Array.isArray(args) ? args.filter((each) => typeof each === 'string') : []
  const line = [...(typeof command === 'string' ? [command] : []), ...words.map((word) => `"${word}"`)].join(' ')
  if (line === '') return []
  return namedScripts(line, {
    dir: root,
    ...(typeof cwd === 'string' && { cwd: resolve(root, cwd) }),
    ...(typeof pluginRoot === 'string' && { variables: { CLAUDE_PLUGIN_ROOT: resolve(root, pluginRoot) } }),
  })
}

/** A file of hooks; one that cannot be read is one all the same, or a guard would vanish with a right to read it. */
type Config = Fingerprint & { readonly text: string; readonly isUnreadable?: true }

/** The file of hooks of a folder that is not the user's own. It is the folder's: a link to elsewhere would be another's. */
function configOf(root: string, kind: Kind): Config | undefined {
  const folders = kind === 'project' ? [join(root, '.hookloop')] : [join(root, '.hookloop'), root]
  const config = folders.map(configIn).find((found) => found !== undefined)
  if (config === undefined || isInside(realPath(root), config.path)) return config
  throw invalid(join(root, '.hookloop'), undefined, `its file of hooks is a link to ${config.path}, which is elsewhere`)
}

const names = ['hooks.json', 'hooks.jsonc', 'hooks.yaml', 'hooks.yml']

/** The one file of hooks in a folder. Two of them would leave open which counts. */
function configIn(folder: string): Config | undefined {
  const found = names.flatMap((name): readonly Config[] => {
    const path = join(folder, name)
    const read = readPrinted(path)
    if (read !== undefined) return [read]
    return isThere(path) ? [{ path: join(realPath(folder), name), hash: '', text: '', isUnreadable: true }] : []
  })
  if (found.length <= 1) return found[0]
  const files = found.map(({ path }) => path).join(', ')
  throw invalid(folder, undefined, `there are several files of hooks: ${files}. Keep one`)
}

export function defaultHome(env: NodeJS.ProcessEnv = process.env): string {
  return join(env['XDG_CONFIG_HOME'] ?? join(homedir(), '.config'), 'hookloop')
}

/** Where a file of hooks would be written. */
export function hookFileOf(dir: string): string {
  return join(resolve(dir), '.hookloop', names[0]!)
}
