import { fingerprint, isInside, realPath, type Fingerprint } from '../../trust/fingerprint.ts'
import type { TrustStatus, TrustStore } from '../../trust/trust-store.ts'
import { namedScripts } from '../../trust/named-scripts.ts'
import { identityOf, type Handler, type HookGroup, type HookSource } from './handlers.ts'
import type { Settings } from './read-settings.ts'

/** A file of a project that keeps its hooks from running. */
export type Untrusted = Fingerprint & { readonly status: Exclude<TrustStatus, 'trusted'> }

/** Every file that has a say in what the groups of a project run: those that hold them, and the scripts they name. */
export function filesOf(groups: readonly HookGroup[], dir: string): readonly Fingerprint[] {
  const root = realPath(dir)
  const held = groups.flatMap(({ source }) => configOf(source, root))
  const named = groups
    .filter(({ source }) => configOf(source, root).length > 0)
    .flatMap((group) => scriptsOf(group, dir))
  const all = [...held, ...named]
  return all.filter(({ path }, i) => all.findIndex((each) => each.path === path) === i)
}

/**
 * The groups that may run. What lies in the project does so only if its file, and every script it names, is what somebody
 * has trusted; what is the user's own always does.
 */
export function trustedGroups(
  { groups }: Settings,
  { dir, trust }: { readonly dir: string; readonly trust: TrustStore | 'all' },
): { readonly groups: readonly HookGroup[]; readonly untrusted: readonly Untrusted[] } {
  if (trust === 'all') return { groups, untrusted: [] }
  const root = realPath(dir)
  const untrusted = new Map<string, Untrusted>()
  const kept = groups.filter((group) => {
    const config = configOf(group.source, root)
    if (config.length === 0) return true
    const missing = [...config, ...scriptsOf(group, dir)].flatMap((file): Untrusted[] => {
      const status = trust.statusOf(file)
      return status === 'trusted' ? [] : [{ ...file, status }]
    })
    for (const file of missing) untrusted.set(file.path, file)
    return missing.length === 0
  })
  // A file without hooks is in no group. If it had some that were trusted, they are missing.
  for (const file of trust.changedFiles(dir)) {
    if (!file.path.includes('/.hookloop/')) untrusted.set(file.path, { ...file, status: 'changed' })
  }
  return { groups: kept, untrusted: [...untrusted.values()] }
}

/** The file that holds a group, if it is the project's. */
function configOf({ file, kind, print = fingerprint(file) }: HookSource, root: string): readonly Fingerprint[] {
  if (kind === 'given' || kind === 'managed') return []
  return print !== undefined && isInside(root, print.path) ? [print] : []
}

/** The scripts that groups name. */
export function scriptsOf(
  { handlers, source }: Pick<HookGroup, 'handlers' | 'source'>,
  dir: string,
): readonly Fingerprint[] {
  const { root, plugin = root } = source
  const variables = plugin === undefined ? {} : { CLAUDE_PLUGIN_ROOT: plugin }
  return handlers.flatMap((handler) => namedScripts(commandLineOf(handler), { dir, variables }))
}

export function commandLineOf(handler: Handler): string {
  if (handler.type !== 'command') return ''
  return [handler.command, ...(handler.args ?? [])].join(' ')
}

/**
 * Remembers the scripts that the groups of a project name as they are now, and says later which of them is another one, or
 * gone.
 */
export function scriptWatch(
  groups: readonly HookGroup[],
  dir: string,
): (handler: Handler, source: HookSource) => string | undefined {
  const root = realPath(dir)
  const look = (handler: Handler, source: HookSource): readonly Fingerprint[] =>
    scriptsOf({ handlers: [handler], source }, dir)
  const known = new Map<string, readonly Fingerprint[]>()
  for (const { handlers, source } of groups) {
    if (configOf(source, root).length === 0) continue
    for (const handler of handlers) known.set(identityOf(handler, source), look(handler, source))
  }
  return (handler, source) => {
    const before = known.get(identityOf(handler, source)) ?? []
    if (before.length === 0) return undefined
    // What a pattern stands for takes a walk through folders to say, which is too much for every call.
    const isPattern = /[*?[]/.test(commandLineOf(handler))
    const now = isPattern ? before.flatMap(({ path }) => fingerprint(path) ?? []) : look(handler, source)
    const changed = before.find(({ path, hash }) => !now.some((each) => each.path === path && each.hash === hash))
    return changed && `${changed.path} is not what it was when the agent was put together`
  }
}
