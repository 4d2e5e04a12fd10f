import { basename, extname } from 'node:path'
import { partsOf, rememberAgent, storeOf } from '../../core/agent/agent-parts.ts'
import type { Agent } from '../../core/agent/agent.ts'
import { sessionPort } from '../../sessions/session/session.ts'
import type { SessionStore } from '../../sessions/stores/store.ts'
import { UsageError } from '../usage-error.ts'

export type Agents = { readonly [key: string]: Agent<unknown> }

/** Which agent files a worker loads, by the key that `send` names: the name of the file, or the one in `key=file`. */
export function agentFiles(
  files: readonly string[],
  named: readonly string[] = [],
): readonly (readonly [key: string, file: string])[] {
  const withName = (file: string): readonly [key: string, file: string] => [basename(file, extname(file)), file]
  const pairs = named.map((text) => {
    const at = text.indexOf('=')
    return at < 0 ? withName(text) : ([text.slice(0, at), text.slice(at + 1)] as const)
  })
  if (pairs.some(([key, file]) => key === '' || file === ''))
    throw new UsageError('--agent needs a key and a file, such as --agent support=agents/support.ts')
  const all = [...files.map(withName), ...pairs]
  if (all.length === 0) throw new UsageError('No agent was named. Write, for example: hookloop worker agent.ts')
  const seen = new Map<string, string>()
  for (const [key, file] of all) {
    const other = seen.get(key)
    if (other !== undefined)
      throw new UsageError(`${other} and ${file} have the same key "${key}". Name one with --agent <key>=${file}`)
    seen.set(key, file)
  }
  return all
}

/** Sessions store the name of their agent, so the agents of a worker need different names. */
export function checkNames(agents: Agents): void {
  const keys = new Map<string, string>()
  for (const [key, agent] of Object.entries(agents)) {
    const { name } = partsOf(agent)
    const other = keys.get(name)
    if (other !== undefined)
      throw new UsageError(`The agents ${other} and ${key} have the same name "${name}". Set it: { name: '${key}', … }`)
    keys.set(name, key)
  }
}

/** The store of the agents, if they have one that they share. */
export function sharedStore(agents: Agents): SessionStore | undefined {
  const stores = new Set(Object.values(agents).flatMap((agent) => storeOf(agent) ?? []))
  if (stores.size <= 1) return [...stores][0] as SessionStore | undefined
  throw new UsageError(
    'Each agent has a store of its own. Import one store in all agent files, or name one with --store.',
  )
}

/** The agents with sessions in this store, also those that have another one. */
export function withStore(agents: Agents, store: SessionStore): Agents {
  const port = sessionPort(store)
  return Object.fromEntries(
    Object.entries(agents).map(([key, agent]) => {
      const parts = partsOf(agent)
      const stored: Agent<unknown> = { ...agent, session: (id) => port.session(parts, id) }
      rememberAgent(stored, parts, store)
      return [key, stored]
    }),
  )
}
