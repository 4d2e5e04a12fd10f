import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isJsonObject, type Json, type JsonObject } from '../../../state/json.ts'
import { messageOf } from '../../../errors.ts'
import { readWithFingerprint } from '../../trust/fingerprint.ts'
import { readFrontMatterHooks, readHead } from './front-matter-hooks.ts'
import { configDir } from '../run/hook-environment.ts'
import { readHooks, type ConfigProblem, type HookGroup, type HookSource } from './handlers.ts'

/** Where to look. */
export type SettingsPlaces = {
  /** The project. */
  readonly dir: string
  /** These files stand for the project's own, which are then not read. */
  readonly files?: readonly HookSource[]
  /** Where the user's own `.claude` is; false: nowhere. */
  readonly home?: string | false
  /** A file of the organisation, whose hooks nobody can turn off. */
  readonly managed?: string
  /** Plugins: their folders, with what the user has set for them. */
  readonly plugins?: readonly PluginPlace[]
  /** Settings that were given in code, or on the command line. */
  readonly settings?: JsonObject
}

export type PluginPlace = string | { readonly dir: string; readonly options?: { readonly [name: string]: string } }

export type Settings = {
  /** In order: managed, user, project, local, given, plugins, skills and agents of the user, then of the project. */
  readonly groups: readonly HookGroup[]
  readonly problems: readonly ConfigProblem[]
  /** Every file that was read, with its text. */
  readonly files: readonly { readonly source: HookSource; readonly text: string }[]
  readonly allowedHttpUrls: readonly string[] | undefined
  readonly allowedHttpVariables: readonly string[] | undefined
}

type Read = { readonly source: HookSource; readonly text: string; readonly value: JsonObject }

/** Reads every settings file there is. None of them can stop the others from being read. */
export function readSettings(places: SettingsPlaces): Settings {
  const problems: ConfigProblem[] = []
  const files = sourcesOf(places).flatMap((source) => readSource(source, problems))
  const given: readonly Read[] =
    places.settings === undefined
      ? []
      : [{ source: { kind: 'given', file: 'settings given in code' }, text: '', value: places.settings }]
  const plugins = (places.plugins ?? []).flatMap((plugin) => readPlugin(plugin, problems))
  const heads = headsOf(places).flatMap((folder) => readFrontMatterHooks(folder, problems))
  const all = [...files, ...given, ...plugins, ...heads]
  const active = inForce(all)
  const read = active.map((each) => readHooks(each.value['hooks'], withVariables(each, all)))
  return {
    groups: read.flatMap(({ groups }) => groups),
    problems: [...problems, ...read.flatMap((each) => each.problems)],
    files: all.filter(({ text }) => text !== '').map(({ source, text }) => ({ source, text })),
    allowedHttpUrls: textLists(all, 'allowedHttpHookUrls'),
    allowedHttpVariables: textLists(all, 'httpHookAllowedEnvVars'),
  }
}

function sourcesOf({ dir, home, managed, files }: SettingsPlaces): readonly HookSource[] {
  const own = userDir(home)
  const project: readonly HookSource[] = [
    { kind: 'project', file: join(dir, '.claude', 'settings.json') },
    { kind: 'local', file: join(dir, '.claude', 'settings.local.json') },
  ]
  return [
    ...(managed === undefined ? [] : [{ kind: 'managed' as const, file: managed }]),
    ...(own === undefined ? [] : [{ kind: 'user' as const, file: join(own, 'settings.json') }]),
    ...(files ?? project),
  ]
}

function headsOf({ dir, home, files }: SettingsPlaces): readonly string[] {
  const own = userDir(home)
  return [...(own === undefined ? [] : [own]), ...(files === undefined ? [join(dir, '.claude')] : [])]
}

export function userDir(home: string | false | undefined): string | undefined {
  if (home === false) return undefined
  return home === undefined ? configDir() : join(home, '.claude')
}

function readSource(source: HookSource, problems: ConfigProblem[]): readonly Read[] {
  if (source.kind === 'skill' || source.kind === 'agent') return readHead(source, problems)
  return source.kind === 'plugin' ? readPluginFile(source, problems) : readOne(source, problems)
}

function readOne(where: HookSource, problems: ConfigProblem[]): readonly Read[] {
  const printed = readWithFingerprint(where.file)
  if (printed === undefined) {
    if (existsSync(where.file)) problems.push({ source: where, where: '', message: 'it cannot be read' })
    return []
  }
  const { text, path, hash } = printed
  const source: HookSource = { ...where, print: { path, hash } }
  try {
    const value = JSON.parse(text.replace(/^\uFEFF/, '')) as Json
    if (isJsonObject(value)) return [{ source, text, value }]
    problems.push({ source, where: '', message: 'it must be a JSON object' })
  } catch (error) {
    problems.push({ source, where: '', message: `it is not JSON: ${messageOf(error)}` })
  }
  return []
}

/** `hooks/hooks.json` of a plugin, and what its manifest says beside it: paths, or the hooks themselves. */
function readPlugin(plugin: PluginPlace, problems: ConfigProblem[]): readonly Read[] {
  const { dir, options } = typeof plugin === 'string' ? { dir: plugin, options: undefined } : plugin
  const root = resolve(dir)
  const source = (file: string): HookSource => ({
    kind: 'plugin',
    file,
    root,
    ...(options !== undefined && { options }),
  })
  const manifest = readOne(source(join(root, '.claude-plugin', 'plugin.json')), problems)[0]
  const named = [manifest?.value['hooks'] ?? []].flat()
  const files = named.filter((each) => typeof each === 'string')
  for (const file of files.filter((each) => !existsSync(join(root, each)))) {
    problems.push({ source: manifest!.source, where: 'hooks', message: `there is no ${file} in ${root}` })
  }
  const paths = new Set(['hooks/hooks.json', ...files].map((path) => join(root, path)))
  const inline = named
    .filter(isJsonObject)
    .map((hooks) => ({ ...manifest!, value: { hooks: hooks['hooks'] ?? hooks } }))
  const heads = readFrontMatterHooks(root, problems).filter((each) => each.source.kind === 'skill') // those of its agents are ignored
  return [
    ...[...paths].flatMap((path) => readPluginFile(source(path), problems)),
    ...inline,
    ...heads.map((head) => ({ ...head, source: { ...head.source, plugin: root } })),
  ]
}

/** The hooks of a plugin stand under a key of their own, beside a description. */
function readPluginFile(source: HookSource, problems: ConfigProblem[]): readonly Read[] {
  const read = readOne(source, problems)
  if (read.some(({ value }) => value['hooks'] === undefined)) {
    problems.push({ source, where: '', message: 'it has no "hooks", under which the events of a plugin stand' })
  }
  return read
}

/** `env` is for the hooks of the same file, and that of the user for all: a project does not say what the user's hooks see. */
function withVariables({ source, value }: Read, all: readonly Read[]): HookSource {
  const users = all.filter((each) => each.source.kind === 'user' || each.source.kind === 'managed')
  const entries = [...users, { value }].flatMap((each) => Object.entries(each.value['env'] ?? {}))
  const env = entries.flatMap(([name, text]): [string, string][] =>
    typeof text === 'string' || typeof text === 'number' || typeof text === 'boolean' ? [[name, String(text)]] : [],
  )
  return env.length === 0 ? source : { ...source, env: Object.fromEntries(env) }
}

/** What the switches leave: hooks that are turned off, and hooks of nobody but the organisation. */
function inForce(all: readonly Read[]): readonly Read[] {
  const of = (kind: HookSource['kind']): JsonObject | undefined => all.find(({ source }) => source.kind === kind)?.value
  const isManaged = ({ source }: Read): boolean => source.kind === 'managed'
  const isOff = (kind: HookSource['kind']): boolean => of(kind)?.['disableAllHooks'] === true
  if (isOff('managed')) return []
  if (of('managed')?.['allowManagedHooksOnly'] === true) return all.filter(isManaged)
  const strict = [of('managed'), of('user')].some((value) => names(value?.['strictPluginOnlyCustomization'], 'hooks'))
  const left = strict ? all.filter((each) => isManaged(each) || each.source.kind === 'plugin') : all
  if (isOff('given') || (isOff('user') && of('given')?.['disableAllHooks'] !== false)) return left.filter(isManaged)
  // A project turns its own hooks off. Those of the user are not its business: they may be what guards against it.
  if (isOff('local') || (isOff('project') && of('local')?.['disableAllHooks'] !== false)) {
    return left.filter(({ source }) => !isOfProject(source))
  }
  return left
}

function names(list: Json | undefined, name: string): boolean {
  return Array.isArray(list) && list.includes(name)
}

function isOfProject({ kind }: HookSource): boolean {
  return kind === 'project' || kind === 'local'
}

/** Lists of what is allowed add up, but a project adds nothing to a list of its user. */
function textLists(all: readonly Read[], name: string): readonly string[] | undefined {
  const having = all.filter(({ value }) => Array.isArray(value[name]))
  const own = having.filter(({ source }) => !isOfProject(source) && source.kind !== 'plugin')
  const lists = (own.length > 0 ? own : having).map(({ value }) => value[name] as readonly Json[])
  return lists.length === 0 ? undefined : lists.flat().filter((each) => typeof each === 'string')
}
