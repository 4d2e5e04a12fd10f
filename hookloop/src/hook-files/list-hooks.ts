import { resolve } from 'node:path'
import type { ShellOptions } from '../actions/shell.ts'
import { isJsonObject, type Json, type JsonObject } from '../state/json.ts'
import { messageOf, type AgentError } from '../errors.ts'
import { triggerNames, type HookTrigger } from '../hooks/triggers.ts'
import { eventSpec } from './claude/events/claude-events.ts'
import type { ConfigProblem, Handler } from './claude/load/handlers.ts'
import { readSettings, type SettingsPlaces } from './claude/load/read-settings.ts'
import { commandLineOf, filesOf, trustedGroups } from './claude/load/trusted-groups.ts'
import { problemsOfCommand } from './command-problems.ts'
import type { FileHook } from './files/hook-file.ts'
import { everyName, findHooks, hookFilesOf, scriptsOf, wordsForMistake } from './files/project-hooks.ts'
import { realPath, isInside, type Fingerprint } from './trust/fingerprint.ts'
import type { TrustStatus, TrustStore } from './trust/trust-store.ts'
import { describeAction } from './files/describe-action.ts'

/** One hook of a file, as a list shows it. */
export type ListedHook = {
  /** Where it fires; undefined: never. */
  readonly trigger: HookTrigger | undefined
  readonly mode: 'guard' | 'hook' | 'observe'
  readonly name: string
  /** What it runs, whole. */
  readonly runs: string
  /** What else it says about that. */
  readonly more?: JsonObject
  readonly matcher: string | undefined
  readonly priority: number
  readonly source: string
  readonly kind: string
  /** The skill or the agent it belongs to. */
  readonly owner?: string
  readonly trust: TrustStatus | 'own'
  /** The event of the specification it was written for. */
  readonly event?: string
  /** Variables of the user's environment that it is given. */
  readonly sends?: readonly string[]
  /** What is wrong with it, in words. */
  readonly problem?: string
}

export type ListedHooks = { readonly hooks: readonly ListedHook[]; readonly problems: readonly string[] }

export type ListPlaces = Pick<SettingsPlaces, 'dir' | 'files' | 'plugins'> & {
  readonly home?: string | false | undefined
  readonly claudeHome?: string | false | undefined
  readonly trust: TrustStore
}

/** Every hook that files bring, in the order in which they fire, whether they are trusted or not. */
export function listHooks({ home, claudeHome, trust, ...places }: ListPlaces): ListedHooks {
  const problems: string[] = []
  const { dir, files: named } = places
  const own = named === undefined ? listOwn({ dir, home, trust }, problems) : [] // one file was named, and not the folder
  const settings = readSettings({ ...places, ...(claudeHome !== undefined && { home: claudeHome }) })
  problems.push(...settings.problems.map(problemWords))
  const claude = settings.groups.flatMap((group) => {
    const files = filesOf([group], dir)
    const status = worst(files, trust)
    const { trigger } = eventSpec(group.event)
    return group.handlers.map((handler): ListedHook => ({
      trigger,
      event: group.event,
      mode: 'hook',
      name: 'claude',
      runs: wordsFor(handler),
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
  return { hooks: inOrder([...own, ...claude]), problems }
}

/** What is wrong with a settings file, and where. */
export function problemWords({ source, where, message }: ConfigProblem): string {
  return `${source.file}${where === '' ? '' : ` ${where}`}: ${message}`
}

function listOwn(
  { dir, home, trust }: Pick<ListPlaces, 'dir' | 'home' | 'trust'>,
  problems: string[],
): readonly ListedHook[] {
  const refused = new Set<unknown>()
  const onMistake = ({ message, value }: AgentError): void => {
    problems.push(message)
    refused.add(value)
  }
  try {
    const allow = { env: everyName, privateAddresses: true }
    const { hooks, files, mistakes } = findHooks(
      { dir, trust: 'all', allow, ...(home !== undefined && { home }) },
      { onMistake },
    )
    problems.push(...mistakes.map((each) => (refused.has(each.value) ? each.message : wordsForMistake(each))))
    problems.push(...[...refused].map((file) => `${String(file)}: none of its hooks can be used before that is mended`))
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
  const files = isProject ? [...all.filter(({ path }) => path === source.file), ...scriptsOf(each.entry, each.cwd)] : []
  return hook.triggers.map((trigger) => ({
    trigger,
    mode: hook.mode === 'transform' ? 'hook' : hook.mode,
    name: hook.name,
    ...describeAction(each.entry),
    matcher: typeof hook.tool === 'string' ? hook.tool : hook.tool instanceof RegExp ? String(hook.tool) : undefined,
    priority: hook.priority,
    source: `${source.file}:${each.line}`,
    kind: source.kind,
    ...(source.owner !== undefined && { owner: source.owner }),
    trust: isProject ? worst(files, trust) : 'own',
    ...sendsOf(each.entry['http'] ?? each.entry['shell'] ?? each.entry['claude']),
  }))
}

function sendsOf(given: Json | undefined): { readonly sends?: readonly string[] } {
  const { allowedEnvVars, passEnv } = isJsonObject(given) ? given : {}
  const named = [allowedEnvVars, passEnv].flatMap((each) => (Array.isArray(each) ? (each as string[]) : []))
  return named.length === 0 ? {} : { sends: named }
}

function worst(files: readonly Fingerprint[], trust: TrustStore): TrustStatus | 'own' {
  if (files.length === 0) return 'own'
  const all = files.map((file) => trust.statusOf(file))
  return all.includes('untrusted') ? 'untrusted' : all.includes('changed') ? 'changed' : 'trusted'
}

const modeRank = { hook: 0, guard: 1, observe: 2 }

function inOrder(hooks: readonly ListedHook[]): readonly ListedHook[] {
  const place = ({ trigger }: ListedHook): number => (trigger === undefined ? Infinity : triggerNames.indexOf(trigger))
  return hooks.toSorted(
    (a, b) => order(place(a), place(b)) || modeRank[a.mode] - modeRank[b.mode] || b.priority - a.priority,
  )
}

function order(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1
}

function wordsFor(handler: Handler): string {
  switch (handler.type) {
    case 'command':
      return commandLineOf(handler)
    case 'http':
      return `POST ${handler.url}`
    case 'mcp_tool':
      return `mcp ${handler.server}/${handler.tool}`
    case 'prompt':
    case 'agent':
      return `${handler.type}: ${handler.prompt}`
    default:
      return handler satisfies never
  }
}

/** Every file of a project that has to be trusted before its hooks run. */
export function filesToTrust(dir: string): readonly Fingerprint[] {
  const settings = readSettings({ dir, home: false })
  const all = [...hookFilesOf(dir), ...filesOf(settings.groups, dir)]
  return all.filter(({ path }, i) => all.findIndex((each) => each.path === path) === i)
}

/** Files of a project that keep hooks from running. Of a file that is not trusted, nothing else is read. */
export function untrustedFiles(
  dir: string,
  trust: TrustStore,
): readonly (Fingerprint & { readonly status: Doubtful })[] {
  const own = findHooks({ dir, home: false, trust }).untrusted
  const claude = trustedGroups(readSettings({ dir, home: false }), { dir, trust }).untrusted
  return [...own, ...claude.filter(({ path }) => own.every((each) => each.path !== path))]
}

/** What is wrong with settings that are the user's own, or trusted: hooks that are left out because of it. */
export function settingsProblems(dir: string, trust: TrustStore): readonly string[] {
  const root = realPath(dir)
  const isHeeded = ({ file, print }: ConfigProblem['source']): boolean =>
    !isInside(root, realPath(file)) || (print !== undefined && trust.statusOf(print) === 'trusted')
  return readSettings({ dir })
    .problems.filter(({ source }) => isHeeded(source))
    .map((problem) => `${problemWords(problem)}. It is left out.`)
}

type Doubtful = Exclude<TrustStatus, 'trusted'>

/** A command of a hook that cannot be started, or names a script that is not there. */
export type CommandProblem = {
  readonly message: string
  /** The hook: its name, or the event and what it runs. */
  readonly hook: string
}

export function problemsOf({
  dir,
  home,
  claudeHome,
}: Pick<ListPlaces, 'dir' | 'home' | 'claudeHome'>): readonly CommandProblem[] {
  const settings = readSettings({ dir, ...(claudeHome !== undefined && { home: claudeHome }) })
  const claude = settings.groups.flatMap(({ handlers, source, event }) =>
    handlers.flatMap((handler) => {
      if (handler.type !== 'command' || handler.shell === 'powershell') return []
      const variables = source.root === undefined ? {} : { CLAUDE_PLUGIN_ROOT: source.root }
      const line = handler.args === undefined ? handler.command : [handler.command, ...handler.args]
      const found = problemsOfCommand(line, { cwd: resolve(dir), variables })
      const hook = handlerName(event, handler)
      return found.map((problem) => ({ hook, message: `${source.file}: the hook for ${event} cannot run: ${problem}` }))
    }),
  )
  try {
    const allow = { env: everyName, privateAddresses: true }
    const { hooks } = findHooks(
      { dir, trust: 'all', allow, ...(home !== undefined && { home }) },
      { onMistake: () => undefined }, // the list says what is wrong with the file
    )
    const own = hooks.flatMap(({ entry, source, line, hook, cwd: root }) => {
      const given = entry['shell']
      const {
        command,
        args,
        cwd = '.',
      } = (typeof given === 'string' ? { command: given } : (given ?? {})) as ShellOptions
      const words = args ?? command
      if (words === undefined) return []
      const found = problemsOfCommand(words, { cwd: resolve(root, cwd) })
      const where = `${source.file}:${line}`
      return found.map((problem) => ({
        hook: hook.name,
        message: `${where}: "${hook.name}" cannot run: ${problem}`,
      }))
    })
    return [...own, ...claude]
  } catch {
    return claude
  }
}

/** What a handler of settings is called where each has a line of its own. */
export function handlerName(event: string, handler: Handler): string {
  return `${event} ${wordsFor(handler)}`
}
