import { isJsonObject, type Json, type JsonObject } from '../values/json.ts'
import { messageOf, type AgentError } from '../errors.ts'
import { triggerNames, type HookTrigger } from '../core/hooks/triggers.ts'
import { eventSpec } from './claude/events/claude-events.ts'
import { describeHandler } from './claude/load/describe-handler.ts'
import { describeProblem, leftOutText, type ConfigProblem } from './claude/load/handlers.ts'
import { readSettings, type SettingsPlaces } from './claude/load/read-settings.ts'
import { filesOf, trustedGroups } from './claude/load/trusted-groups.ts'
import { stringIn } from './text.ts'
import { optionsOf, type FileHook } from './files/hook-file.ts'
import { actionKinds } from './files/hook-file-schema.ts'
import { findAllHooks, findHooks, hookFilesOf, leftOutNote, scriptsOfEntry } from './files/project-hooks.ts'
import { isInside, realPath, uniqueByPath, type Fingerprint } from './trust/fingerprint.ts'
import type { TrustStatus, TrustStore, UntrustedFile } from './trust/trust-store.ts'

/** One hook of a file, for display. */
export type ListedHook = {
  /** Undefined if it never fires. */
  readonly trigger: HookTrigger | undefined
  readonly mode: 'guard' | 'hook' | 'observe'
  readonly name: string
  readonly runs: string
  /** The other options of its action. */
  readonly more?: JsonObject
  readonly matcher: string | undefined
  readonly priority: number
  readonly source: string
  readonly kind: string
  readonly owner?: string
  readonly trust: TrustStatus | 'own'
  readonly event?: string
  /** Environment variables of the user that it gets. */
  readonly sends?: readonly string[]
  readonly problem?: string
}

export type ListedHooks = {
  readonly hooks: readonly ListedHook[]
  readonly problems: readonly string[]
  /** What has no effect here, although it is right. */
  readonly notes: readonly string[]
}

export type ListPlaces = Pick<SettingsPlaces, 'dir' | 'plugins'> & {
  readonly home?: string | false | undefined
  readonly claudeHome?: string | false | undefined
  readonly trust: TrustStore
}

/** Every hook of the hook files and Claude Code settings, trusted or not, in the order in which they fire. */
export function listHooks({ home, claudeHome, trust, ...places }: ListPlaces): ListedHooks {
  const problems: string[] = []
  const { dir } = places
  const own = listOwn({ dir, home, trust }, problems)
  const settings = readSettings({ ...places, ...(claudeHome !== undefined && { home: claudeHome }) })
  problems.push(...settings.problems.map(describeProblem))
  const claude = settings.groups.flatMap((group) => {
    const files = filesOf([group], dir)
    const status = worstStatus(files, trust)
    const { trigger } = eventSpec(group.event)
    return group.handlers.map((handler): ListedHook => ({
      trigger,
      event: group.event,
      mode: 'hook',
      name: 'claude',
      runs: describeHandler(handler),
      matcher:
        [group.matcher, handler.if].filter((each) => each !== undefined && each !== '').join(' if ') || undefined,
      priority: -1_000_000,
      source: group.source.file,
      kind: group.source.kind,
      ...(group.source.name !== undefined && { owner: group.source.name }),
      trust: status,
      ...(handler.type === 'http' && handler.allowedEnvVars.length > 0 && { sends: handler.allowedEnvVars }),
    }))
  })
  return { hooks: inOrder([...own, ...claude]), problems, notes: settings.notes.map(describeProblem) }
}

function listOwn(
  { dir, home, trust }: Pick<ListPlaces, 'dir' | 'home' | 'trust'>,
  problems: string[],
): readonly ListedHook[] {
  const rejected = new Set<unknown>()
  const onMistake = ({ message, value }: AgentError): void => {
    problems.push(message)
    rejected.add(value)
  }
  try {
    const { hooks, files, mistakes } = findAllHooks({ dir, ...(home !== undefined && { home }) }, onMistake)
    problems.push(...mistakes.map((each) => (rejected.has(each.value) ? each.message : leftOutNote(each))))
    problems.push(...[...rejected].map((file) => `${String(file)}: none of its hooks can run until that is fixed`))
    return hooks.flatMap((each) => listed(each, { dir, trust, files }))
  } catch (error) {
    problems.push(messageOf(error))
    return []
  }
}

function listed(
  each: FileHook,
  {
    dir,
    trust,
    files: all,
  }: { readonly dir: string; readonly trust: TrustStore; readonly files: readonly Fingerprint[] },
): readonly ListedHook[] {
  const { hook, source } = each
  const isProject = isInside(realPath(dir), source.file)
  const files = isProject
    ? [...all.filter(({ path }) => path === source.file), ...scriptsOfEntry(each.entry, each.cwd)]
    : []
  return hook.triggers.map((trigger) => ({
    trigger,
    mode: hook.mode === 'transform' ? 'hook' : hook.mode,
    name: hook.name,
    ...describeAction(each.entry),
    matcher: hook.tool && String(hook.tool as string | RegExp), // a hook of a file names no tool object
    priority: hook.priority,
    source: `${source.file}:${each.line}`,
    kind: source.kind,
    ...(source.owner !== undefined && { owner: source.owner }),
    trust: isProject ? worstStatus(files, trust) : 'own',
    ...sendsOf(each.entry['http'] ?? each.entry['shell']),
  }))
}

function sendsOf(given: Json | undefined): { readonly sends?: readonly string[] } {
  const { allowedEnvVars, passEnv } = isJsonObject(given) ? given : {}
  const named = [allowedEnvVars, passEnv].flatMap((each) => (Array.isArray(each) ? (each as string[]) : []))
  return named.length === 0 ? {} : { sends: named }
}

function worstStatus(files: readonly Fingerprint[], trust: TrustStore): TrustStatus | 'own' {
  if (files.length === 0) return 'own'
  const all = files.map((file) => trust.statusOf(file))
  return all.includes('untrusted') ? 'untrusted' : all.includes('changed') ? 'changed' : 'trusted'
}

const modeRank = { hook: 0, guard: 1, observe: 2 }

function inOrder(hooks: readonly ListedHook[]): readonly ListedHook[] {
  const place = ({ trigger }: ListedHook): number =>
    trigger === undefined ? triggerNames.length : triggerNames.indexOf(trigger)
  return hooks.toSorted((a, b) => place(a) - place(b) || modeRank[a.mode] - modeRank[b.mode] || b.priority - a.priority)
}

/** The complete command, URL or prompt of an entry, and its other options, for users who decide whether to trust it. */
function describeAction(entry: JsonObject): { readonly runs: string; readonly more?: JsonObject } {
  const kind = actionKinds.find((each) => entry[each] !== undefined)!
  const options = optionsOf(kind, entry[kind]!)
  const { command, args, url, prompt, model, name, ...more } = options
  const words = ((args ?? []) as readonly string[]).map(quoted)
  const line = [...(command === undefined ? [] : [stringIn(command)]), ...words].join(' ')
  const runs = {
    shell: line,
    http: `POST ${stringIn(url)}`,
    prompt: `calls ${stringIn(model) || 'the model of the agent'}: ${stringIn(prompt)}`,
    subagent: `${['agent', stringIn(name), stringIn(model)].filter(Boolean).join(' ')}: ${stringIn(prompt)}`,
  }[kind]
  return { runs, ...(Object.keys(more).length > 0 && { more }) }
}

/** Arguments with special characters are quoted. */
function quoted(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : JSON.stringify(word)
}

/** Every file of a project that must be trusted before its hooks run. */
export function filesToTrust(dir: string): readonly Fingerprint[] {
  const settings = readSettings({ dir, home: false })
  return uniqueByPath([...hookFilesOf(dir), ...filesOf(settings.groups, dir)])
}

/** The files of a project that keep hooks from running. */
export function untrustedFiles(dir: string, trust: TrustStore): readonly UntrustedFile[] {
  const own = findHooks({ dir, home: false, trust }).untrusted
  const claude = trustedGroups(readSettings({ dir, home: false }), { dir, trust }).untrusted
  return uniqueByPath([...own, ...claude])
}

/** Problems in settings of the user and in trusted settings of the project. The hooks concerned are left out. */
export function settingsProblems(dir: string, trust: TrustStore): readonly string[] {
  const root = realPath(dir)
  const isUsed = ({ file, print }: ConfigProblem['source']): boolean =>
    !isInside(root, realPath(file)) || (print !== undefined && trust.statusOf(print) === 'trusted')
  return readSettings({ dir })
    .problems.filter(({ source }) => isUsed(source))
    .map(leftOutText)
}
