import { resolve } from 'node:path'
import { messageOf } from '../errors.ts'
import { triggerNames, type HookTrigger } from '../hooks/triggers.ts'
import { eventSpec } from './claude/events.ts'
import type { Handler } from './claude/handlers.ts'
import { readSettings } from './claude/settings.ts'
import { commandLineOf, filesOf } from './claude/trusted-groups.ts'
import type { FileHook } from './hook-file.ts'
import { everyName, findHooks, hookFilesOf, scriptsOf } from './project-hooks.ts'
import { realPath, isInside, type Fingerprint, type TrustStatus, type TrustStore } from './trust.ts'

/** One hook of a file, as a list shows it. */
export type ListedHook = {
  /** Where it fires; undefined: never. */
  readonly trigger: HookTrigger | undefined
  readonly mode: 'guard' | 'hook' | 'observe'
  readonly name: string
  /** What it runs. */
  readonly runs: string
  readonly matcher: string | undefined
  readonly priority: number
  readonly source: string
  readonly kind: string
  readonly trust: TrustStatus | 'own'
  /** The event of the specification it was written for. */
  readonly event?: string
}

export type ListedHooks = { readonly hooks: readonly ListedHook[]; readonly problems: readonly string[] }

export type ListPlaces = {
  readonly dir: string
  readonly home?: string | false | undefined
  readonly claudeHome?: string | false | undefined
  readonly trust: TrustStore
}

/** Every hook that files bring, in the order in which they fire, whether they are trusted or not. */
export function listHooks({ dir, home, claudeHome, trust }: ListPlaces): ListedHooks {
  const problems: string[] = []
  const own = listOwn({ dir, home, trust }, problems)
  const settings = readSettings({ dir, ...(claudeHome !== undefined && { home: claudeHome }) })
  problems.push(...settings.problems.map(({ source, where, message }) => `${source.file} ${where}: ${message}`))
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
      trust: status,
    }))
  })
  return { hooks: inOrder([...own, ...claude]), problems }
}

function listOwn({ dir, home, trust }: Omit<ListPlaces, 'claudeHome'>, problems: string[]): readonly ListedHook[] {
  try {
    const allow = { env: everyName, privateAddresses: true }
    const found = findHooks({ dir, trust: 'all', allow, ...(home !== undefined && { home }) })
    return found.hooks.flatMap((each) => listed(each, { dir, trust }))
  } catch (error) {
    problems.push(messageOf(error))
    return []
  }
}

function listed(
  each: FileHook,
  { dir, trust }: { readonly dir: string; readonly trust: TrustStore },
): readonly ListedHook[] {
  const { hook, source } = each
  const isProject = isInside(realPath(dir), source.file)
  const files = isProject
    ? [...hookFilesOf(dir).filter(({ path }) => path === source.file), ...scriptsOf(each.entry, resolve(dir))]
    : []
  return hook.triggers.map((trigger) => ({
    trigger,
    mode: hook.mode === 'transform' ? 'hook' : hook.mode,
    name: hook.name,
    runs: hook.action?.label ?? '',
    matcher: typeof hook.tool === 'string' ? hook.tool : hook.tool instanceof RegExp ? String(hook.tool) : undefined,
    priority: hook.priority,
    source: `${source.file}:${each.line}`,
    kind: source.kind,
    trust: isProject ? worst(files, trust) : 'own',
  }))
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
      return `${handler.server}/${handler.tool}`
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
