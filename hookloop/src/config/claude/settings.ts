import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { isJsonObject, type Json, type JsonObject } from '../../data/json.ts'
import { messageOf } from '../../errors.ts'
import { readHooks, type ConfigProblem, type HookGroup, type HookSource } from './handlers.ts'

/** Where to look. */
export type SettingsPlaces = {
  /** The project. */
  readonly dir: string
  /** Where the user's own `.claude` is; false: nowhere. */
  readonly home?: string | false
  /** A file of the organisation, whose hooks nobody can turn off. */
  readonly managed?: string
  /** Folders of plugins. */
  readonly plugins?: readonly string[]
  /** Settings that were given in code, or on the command line. */
  readonly settings?: JsonObject
}

export type Settings = {
  /** In order: managed, user, project, local, given, plugins. */
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
  const files = sourcesOf(places).flatMap((source) => readOne(source, problems))
  const given: readonly Read[] =
    places.settings === undefined
      ? []
      : [{ source: { kind: 'given', file: 'settings given in code' }, text: '', value: places.settings }]
  const plugins = (places.plugins ?? []).flatMap((root) => readPlugin(root, problems))
  const all = [...files, ...given, ...plugins]
  const active = inForce(all)
  const read = active.map(({ source, value }) => readHooks(value['hooks'], source))
  return {
    groups: read.flatMap(({ groups }) => groups),
    problems: [...problems, ...read.flatMap((each) => each.problems)],
    files: all.filter(({ text }) => text !== '').map(({ source, text }) => ({ source, text })),
    allowedHttpUrls: textLists(all, 'allowedHttpHookUrls'),
    allowedHttpVariables: textLists(all, 'httpHookAllowedEnvVars'),
  }
}

function sourcesOf({ dir, home = homedir(), managed }: SettingsPlaces): readonly HookSource[] {
  return [
    ...(managed === undefined ? [] : [{ kind: 'managed' as const, file: managed }]),
    ...(home === false ? [] : [{ kind: 'user' as const, file: join(home, '.claude', 'settings.json') }]),
    { kind: 'project', file: join(dir, '.claude', 'settings.json') },
    { kind: 'local', file: join(dir, '.claude', 'settings.local.json') },
  ]
}

function readOne(source: HookSource, problems: ConfigProblem[]): readonly Read[] {
  let text: string
  try {
    text = readFileSync(source.file, 'utf8')
  } catch (error) {
    const { code } = error as { code?: string }
    if (code !== 'ENOENT' && code !== 'ENOTDIR') problems.push({ source, where: '', message: messageOf(error) })
    return []
  }
  try {
    const value = JSON.parse(text.replace(/^\uFEFF/, '')) as Json
    if (isJsonObject(value)) return [{ source, text, value }]
    problems.push({ source, where: '', message: 'it must be a JSON object' })
  } catch (error) {
    problems.push({ source, where: '', message: `it is not JSON: ${messageOf(error)}` })
  }
  return []
}

/** `hooks/hooks.json` of a plugin, or what its manifest says instead: a path, several, or the hooks themselves. */
function readPlugin(root: string, problems: ConfigProblem[]): readonly Read[] {
  const source = (file: string): HookSource => ({ kind: 'plugin', file, root })
  const manifest = readOne(source(join(root, '.claude-plugin', 'plugin.json')), problems)[0]
  const named = manifest?.value['hooks']
  if (isJsonObject(named)) return [{ ...manifest!, value: { hooks: named['hooks'] ?? named } }]
  const paths = typeof named === 'string' ? [named] : Array.isArray(named) ? named : ['hooks/hooks.json']
  return paths.filter((path) => typeof path === 'string').flatMap((path) => readOne(source(join(root, path)), problems))
}

/** What the switches leave: hooks that are turned off, and hooks of nobody but the organisation. */
function inForce(all: readonly Read[]): readonly Read[] {
  const of = (kind: HookSource['kind']): JsonObject | undefined => all.find(({ source }) => source.kind === kind)?.value
  const isManaged = ({ source }: Read): boolean => source.kind === 'managed'
  if (of('managed')?.['disableAllHooks'] === true) return []
  if (of('managed')?.['allowManagedHooksOnly'] === true) return all.filter(isManaged)
  const isOff = (kind: HookSource['kind']): boolean => of(kind)?.['disableAllHooks'] === true
  if (isOff('given') || (isOff('user') && of('given')?.['disableAllHooks'] !== false)) return all.filter(isManaged)
  // A project turns its own hooks off. Those of the user are not its business: they may be what guards against it.
  if (isOff('local') || isOff('project')) return all.filter(({ source }) => !isOfProject(source))
  return all
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
