import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isJsonObject, type Json, type JsonObject } from '../../../values/json.ts'
import { messageOf } from '../../../errors.ts'
import { nearestName } from '../../../values/nearest-name.ts'
import { isClaudeEvent } from '../events/claude-events.ts'
import { headField, headsIn, type Head } from '../../heads.ts'
import { readConfig } from '../../read-config.ts'
import { configDir } from '../run/hook-environment.ts'
import { readGroups, type ConfigProblem, type HookGroup, type HookSource } from './handlers.ts'

export type SettingsPlaces = {
  /** The project. */
  readonly dir: string
  /** The folder that contains the `.claude` folder of the user. `false`: it is not read. */
  readonly home?: string | false
  /** The settings of an organisation. Their hooks cannot be disabled. */
  readonly managed?: string
  /** Folders of plugins, with the options that the user has set for them. */
  readonly plugins?: readonly PluginPlace[]
  /** Settings from code or the command line. */
  readonly settings?: JsonObject
}

export type PluginPlace = string | { readonly dir: string; readonly options?: { readonly [name: string]: string } }

export type Settings = {
  /** In this order: managed, user, project, local, given, plugins, skills and agents of the user, then of the project. */
  readonly groups: readonly HookGroup[]
  readonly problems: readonly ConfigProblem[]
  /** What has no effect here, although it is right. */
  readonly notes: readonly ConfigProblem[]
  readonly allowedHttpUrls: readonly string[] | undefined
  readonly allowedHttpVariables: readonly string[] | undefined
}

/** The settings of one file, or the hooks of one in the same shape. */
type ReadFile = { readonly source: HookSource; readonly value: JsonObject }

/** Reads files below a project, and reports those that are invalid. */
type Reading = { readonly dir: string; readonly problems: ConfigProblem[] }

/** Reads all settings files. An invalid file is reported and does not affect the others. */
export function readSettings(places: SettingsPlaces): Settings {
  const problems: ConfigProblem[] = []
  const reading: Reading = { dir: places.dir, problems }
  const own = userDir(places.home)
  const files = sourcesOf(places, own).flatMap((source) => readOne(source, reading))
  const source: HookSource = { kind: 'given', file: 'settings in code' }
  const given = places.settings === undefined ? [] : [{ source, value: places.settings }]
  const plugins = (places.plugins ?? []).flatMap((plugin) => readPlugin(plugin, reading))
  const folders = [own ?? [], join(places.dir, '.claude')].flat()
  const heads = folders.flatMap((folder) => headsIn(folder).flatMap((head) => readHead(head, reading)))
  const all = [...files, ...given, ...plugins, ...heads]
  const enabled = enabledSources(all)
  const read = enabled.map((each) => readGroups(each.value['hooks'], withVariables(each, all)))
  return {
    groups: read.flatMap(({ groups }) => groups),
    problems: [...problems, ...all.flatMap(typos), ...read.flatMap((each) => each.problems)],
    notes: all.flatMap(permissionNote),
    allowedHttpUrls: textLists(all, 'allowedHttpHookUrls'),
    allowedHttpVariables: textLists(all, 'httpHookAllowedEnvVars'),
  }
}

function sourcesOf({ dir, managed }: SettingsPlaces, own: string | undefined): readonly HookSource[] {
  return [
    ...(managed === undefined ? [] : [{ kind: 'managed' as const, file: managed }]),
    ...(own === undefined ? [] : [{ kind: 'user' as const, file: join(own, 'settings.json') }]),
    { kind: 'project', file: join(dir, '.claude', 'settings.json') },
    { kind: 'local', file: join(dir, '.claude', 'settings.local.json') },
  ]
}

export function userDir(home: string | false | undefined): string | undefined {
  if (home === false) return undefined
  return home === undefined ? configDir() : join(home, '.claude')
}

/** Reads a file. `toValue` finds the settings in its text; it throws if they are invalid. */
function readOne(
  where: HookSource,
  { dir, problems }: Reading,
  toValue: (text: string) => Json | undefined = (text) => JSON.parse(text.replace(/^\uFEFF/, '')) as Json,
): readonly ReadFile[] {
  const config = readConfig(where.file, dir)
  if (config === undefined) return []
  const { text, path, hash, problem } = config
  const source: HookSource = { ...where, print: { path, hash } }
  const leaveOut = (message: string): readonly [] => {
    problems.push({ source, where: '', message })
    return []
  }
  if (problem !== undefined) return leaveOut(problem)
  try {
    const value = toValue(text)
    if (value === undefined) return []
    return isJsonObject(value) ? [{ source, value }] : leaveOut('it must be a JSON object')
  } catch (error) {
    return leaveOut(
      where.kind === 'skill' || where.kind === 'agent' ? messageOf(error) : `it is not valid JSON: ${messageOf(error)}`,
    )
  }
}

/** Reads the hooks in the front matter of a skill, a command or an agent. */
function readHead(head: Head, reading: Reading): readonly ReadFile[] {
  let given: string | undefined
  const read = readOne(head, reading, (text) => {
    const found = headField(text, 'hooks')
    given = found?.name
    return found && { hooks: head.kind === 'agent' ? withSubagentStop(found.value) : found.value }
  })
  return read.map(({ source, value }) => ({
    value,
    source: { ...source, ...(given !== undefined && { name: given }) },
  }))
}

/** `Stop` of an agent is `SubagentStop`: the agent always runs as a subagent. */
function withSubagentStop(hooks: Json): Json {
  if (!isJsonObject(hooks) || hooks['Stop'] === undefined) return hooks
  const { Stop, SubagentStop, ...rest } = hooks
  const all = [Stop, SubagentStop].flatMap((groups) => (Array.isArray(groups) ? groups : []))
  return { ...rest, SubagentStop: all }
}

/** Reads `hooks/hooks.json` of a plugin, and the hooks of its manifest: paths of files, or the hooks themselves. */
function readPlugin(plugin: PluginPlace, reading: Reading): readonly ReadFile[] {
  const { dir, options } = typeof plugin === 'string' ? { dir: plugin, options: undefined } : plugin
  const root = resolve(dir)
  const source = (file: string): HookSource => ({
    kind: 'plugin',
    file,
    root,
    ...(options !== undefined && { options }),
  })
  const manifest = readOne(source(join(root, '.claude-plugin', 'plugin.json')), reading)[0]
  const named = [manifest?.value['hooks'] ?? []].flat()
  const files = named.filter((each) => typeof each === 'string')
  for (const file of files.filter((each) => !existsSync(join(root, each)))) {
    reading.problems.push({ source: manifest!.source, where: 'hooks', message: `there is no ${file} in ${root}` })
  }
  const paths = new Set(['hooks/hooks.json', ...files].map((path) => join(root, path)))
  const inline = named
    .filter(isJsonObject)
    .map((hooks) => ({ ...manifest!, value: { hooks: hooks['hooks'] ?? hooks } }))
  const skills = headsIn(root).filter(({ kind }) => kind === 'skill') // hooks of agents of a plugin are ignored
  const heads = skills.flatMap((head) => readHead(head, reading))
  return [
    ...[...paths].flatMap((path) => readPluginFile(source(path), reading)),
    ...inline,
    ...heads.map((head) => ({ ...head, source: { ...head.source, plugin: root } })),
  ]
}

/** A plugin file has its events under `hooks`, next to a description. */
function readPluginFile(source: HookSource, reading: Reading): readonly ReadFile[] {
  const read = readOne(source, reading)
  if (read.some(({ value }) => value['hooks'] === undefined)) {
    reading.problems.push({ source, where: '', message: 'it has no "hooks" with the events of the plugin' })
  }
  return read
}

/** `env` of a file applies to its own hooks; `env` of the user to all hooks. A project cannot set variables for user hooks. */
function withVariables({ source, value }: ReadFile, all: readonly ReadFile[]): HookSource {
  const users = all.filter((each) => each.source.kind === 'user' || each.source.kind === 'managed')
  const entries = [...users, { value }].flatMap((each) => Object.entries(each.value['env'] ?? {}))
  const env = entries.flatMap(([name, text]): [string, string][] =>
    typeof text === 'string' || typeof text === 'number' || typeof text === 'boolean' ? [[name, String(text)]] : [],
  )
  return env.length === 0 ? source : { ...source, env: Object.fromEntries(env) }
}

/** The sources that are left after `disableAllHooks`, `allowManagedHooksOnly` and `strictPluginOnlyCustomization`. */
function enabledSources(all: readonly ReadFile[]): readonly ReadFile[] {
  const of = (kind: HookSource['kind']): JsonObject | undefined => all.find(({ source }) => source.kind === kind)?.value
  const isManaged = ({ source }: ReadFile): boolean => source.kind === 'managed'
  const isOff = (kind: HookSource['kind']): boolean => of(kind)?.['disableAllHooks'] === true
  if (isOff('managed')) return []
  if (of('managed')?.['allowManagedHooksOnly'] === true) return all.filter(isManaged)
  const strict = [of('managed'), of('user')].some((value) => names(value?.['strictPluginOnlyCustomization'], 'hooks'))
  const left = strict ? all.filter((each) => isManaged(each) || each.source.kind === 'plugin') : all
  if (isOff('given') || (isOff('user') && of('given')?.['disableAllHooks'] !== false)) return left.filter(isManaged)
  // A project can disable its own hooks, but not those of the user, which may guard against the project.
  if (isOff('local') || (isOff('project') && of('local')?.['disableAllHooks'] !== false)) {
    return left.filter(({ source }) => !isOfProject(source))
  }
  return left
}

/** The settings that are read here. The others are not for hooks. */
const known = [
  'hooks',
  'env',
  'disableAllHooks',
  'allowManagedHooksOnly',
  'strictPluginOnlyCustomization',
  'allowedHttpHookUrls',
  'httpHookAllowedEnvVars',
  'permissions',
]

/** Settings with a typo in their name, and events outside of `hooks`: their hooks would be missing silently. */
function typos({ source, value }: ReadFile): readonly ConfigProblem[] {
  if (source.kind === 'skill' || source.kind === 'agent') return []
  return Object.keys(value).flatMap((where): readonly ConfigProblem[] => {
    if (isClaudeEvent(where)) return [{ source, where, message: 'an event must be inside "hooks"' }]
    const near = known.includes(where) ? undefined : nearestName(where, known)
    return near === undefined ? [] : [{ source, where, message: `it is not a setting; did you mean "${near}"?` }]
  })
}

/** The rules that would deny or ask in Claude Code. */
function permissionNote({ source, value }: ReadFile): readonly ConfigProblem[] {
  const { permissions } = value
  if (!isJsonObject(permissions)) return []
  const rules = ['deny', 'ask'].filter((name) => Array.isArray(permissions[name]) && permissions[name].length > 0)
  if (rules.length === 0) return []
  const message = `the rules in ${rules.map((name) => `"${name}"`).join(' and ')} are not applied here; use bash({ deny, ask }), files({ hide, protect }) or a guard`
  return [{ source, where: 'permissions', message }]
}

function names(list: Json | undefined, name: string): boolean {
  return Array.isArray(list) && list.includes(name)
}

function isOfProject({ kind }: HookSource): boolean {
  return kind === 'project' || kind === 'local'
}

/** Lists of several files are combined, but a project cannot extend a list of the user. */
function textLists(all: readonly ReadFile[], name: string): readonly string[] | undefined {
  const having = all.filter(({ value }) => Array.isArray(value[name]))
  const own = having.filter(({ source }) => !isOfProject(source) && source.kind !== 'plugin')
  const lists = (own.length > 0 ? own : having).map(({ value }) => value[name] as readonly Json[])
  return lists.length === 0 ? undefined : lists.flat().filter((each) => typeof each === 'string')
}
