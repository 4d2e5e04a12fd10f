import { fingerprint, isInside, realPath, uniqueByPath, type Fingerprint } from '../../trust/fingerprint.ts'
import type { TrustStore, UntrustedFile } from '../../trust/trust-store.ts'
import { namedFiles } from '../../trust/named-files.ts'
import { identityOf, type Handler, type HookGroup, type HookSource } from './handlers.ts'
import type { Settings } from './read-settings.ts'

/** The settings files of the project with the groups, and the files that their commands name. */
export function filesOf(groups: readonly HookGroup[], dir: string): readonly Fingerprint[] {
  const root = realPath(dir)
  const configs = groups.flatMap(({ source }) => configOf(source, root))
  const scripts = groups
    .filter(({ source }) => configOf(source, root).length > 0)
    .flatMap((group) => scriptsOf(group, dir))
  return uniqueByPath([...configs, ...scripts])
}

/**
 * The groups that may run. A group of the project runs only if its file and all files that its commands name are trusted. Groups of the user
 * always run.
 */
export function trustedGroups(
  { groups }: Settings,
  { dir, trust }: { readonly dir: string; readonly trust: TrustStore | 'all' },
): { readonly groups: readonly HookGroup[]; readonly untrusted: readonly UntrustedFile[] } {
  if (trust === 'all') return { groups, untrusted: [] }
  const root = realPath(dir)
  const untrusted = new Map<string, UntrustedFile>()
  const trusted = groups.filter((group) => {
    const config = configOf(group.source, root)
    if (config.length === 0) return true
    const missing = trust.untrusted([...config, ...scriptsOf(group, dir)])
    for (const file of missing) untrusted.set(file.path, file)
    return missing.length === 0
  })
  // A file that had trusted hooks, and has none now, is in no group.
  for (const file of trust.changedFiles(dir)) {
    if (!file.path.includes('/.hookloop/')) untrusted.set(file.path, { ...file, status: 'changed' })
  }
  return { groups: trusted, untrusted: [...untrusted.values()] }
}

/** The settings file of a group, if it belongs to the project. */
function configOf({ file, kind, print = fingerprint(file) }: HookSource, root: string): readonly Fingerprint[] {
  if (kind === 'given' || kind === 'managed') return []
  return print !== undefined && isInside(root, print.path) ? [print] : []
}

/** The files of a project that the commands of a group, and the variables of its file, name. */
export function scriptsOf(
  { handlers, source }: Pick<HookGroup, 'handlers' | 'source'>,
  dir: string,
): readonly Fingerprint[] {
  const { root, plugin = root, env = {} } = source
  const variables = { ...env, ...(plugin !== undefined && { CLAUDE_PLUGIN_ROOT: plugin }) }
  return handlers.flatMap((handler) => {
    if (handler.type !== 'command') return []
    const texts = [handler.command, ...(handler.args ?? []), ...Object.values(env)]
    return namedFiles(texts, { dir, variables })
  })
}

/** Stores the fingerprints of the scripts of a project. The returned function says which script of a handler has changed. */
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
    const before = known.get(identityOf(handler, source))
    if (before === undefined) return undefined
    const now = look(handler, source)
    const changed = missingIn(now, before) ?? missingIn(before, now)
    return changed && `${changed.path} has changed since the agent was created`
  }
}

/** The first of some files that is not in others with the same content. */
function missingIn(others: readonly Fingerprint[], files: readonly Fingerprint[]): Fingerprint | undefined {
  const hashes = new Map(others.map(({ path, hash }) => [path, hash]))
  return files.find(({ path, hash }) => hashes.get(path) !== hash)
}
