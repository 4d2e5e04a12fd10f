import { statSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { homeFolder } from '../../system/files/user-folders.ts'
import { storeOf } from '../../core/agent/agent-parts.ts'
import type { Environment } from '../../models/providers.ts'
import { postgresStore } from '../../sessions/stores/postgres-store.ts'
import { sqliteStore } from '../../sessions/stores/sqlite-store.ts'
import { storeFailed, type SessionStore } from '../../sessions/stores/store.ts'
import { loadAgent } from '../agents/load-agent.ts'
import type { CliContext } from '../cli-context.ts'
import { shellQuote } from '../terminal/shell-quote.ts'
import { UsageError } from '../usage-error.ts'

export type StoreFlags = {
  /** `--no-store` is `false`. */
  readonly store?: string | false
  readonly agent?: string
  readonly json?: boolean
}

export type OpenStore = {
  readonly store: SessionStore
  /** No option, agent or variable named it: it is the store of this user. */
  readonly isDefault: boolean
  /** The options that select it on a command line, with a leading blank. */
  readonly options: string
}

type Location = { readonly kind: 'sqlite' | 'postgres'; readonly at: string }

/**
 * Opens the session store: `--store`, else the store of the agent in `--agent`, else HOOKLOOP_STORE, else the database of
 * this user. Returns undefined if sessions are not to be stored.
 */
export async function openStore(
  flags: StoreFlags,
  env: Environment,
  { mustExist = false }: { readonly mustExist?: boolean } = {},
): Promise<OpenStore | undefined> {
  if (flags.store === false) return undefined
  if (flags.store !== undefined) {
    const location = parseLocation(flags.store, '--store')
    const shown = location.kind === 'postgres' ? shownUrl(location.at, env) : shellQuote(location.at)
    return { store: await openAt(location, mustExist), isDefault: false, options: ` --store ${shown}` }
  }
  const own = flags.agent === undefined ? undefined : await storeIn(flags.agent)
  if (own !== undefined) return { store: own, isDefault: false, options: ` --agent ${shellQuote(flags.agent!)}` }
  const named = env['HOOKLOOP_STORE'] ?? ''
  if (named === 'none') return undefined
  if (named !== '')
    return { store: await openAt(parseLocation(named, 'HOOKLOOP_STORE'), mustExist), isDefault: false, options: '' }
  return { store: sqliteStore(join(dataFolder(env), 'sessions.db')), isDefault: true, options: '' }
}

/** The store of an agent file: of the options that it exports, or of the agent. */
async function storeIn(file: string): Promise<SessionStore | undefined> {
  const exported = await loadAgent(file)
  return 'agent' in exported ? (storeOf(exported.agent) as SessionStore | undefined) : exported.options.store
}

/** A URL for a command line to copy. One with a password is shown as the variable that contains it, if there is one. */
function shownUrl(url: string, env: Environment): string {
  const hasPassword = URL.canParse(url) ? new URL(url).password !== '' : true
  if (!hasPassword) return shellQuote(url)
  const variable = Object.keys(env).find((name) => env[name] === url)
  return variable === undefined ? '…' : `"$${variable}"`
}

/** Opens the store for a command that reads sessions, and closes it afterwards. A store that is named must exist. */
export async function withStore<T>(
  flags: StoreFlags & { readonly createStore?: boolean },
  { env }: Pick<CliContext, 'env'>,
  use: (opened: OpenStore) => Promise<T>,
): Promise<T> {
  const opened = await openStore(flags, env, { mustExist: flags.createStore !== true })
  if (opened === undefined) throw new UsageError('HOOKLOOP_STORE is "none". Name a session store with --store.')
  try {
    return await use(opened)
  } finally {
    await opened.store.close()
  }
}

/** The data folder of this user, by the XDG base directory rules. */
export function dataFolder(env: Environment): string {
  const named = env['XDG_DATA_HOME'] ?? ''
  if (isAbsolute(named)) return join(named, 'hookloop') // the XDG rules say to ignore a relative path
  const local = env['LOCALAPPDATA'] ?? ''
  if (process.platform === 'win32' && local !== '') return join(local, 'hookloop')
  return join(homeFolder(), '.local', 'share', 'hookloop')
}

function parseLocation(named: string, by: string): Location {
  if (/^postgres(ql)?:\/\//.test(named)) return { kind: 'postgres', at: named }
  if (named.trim() === '' || /^[a-z][a-z0-9+.-]*:\/\//i.test(named)) {
    throw new UsageError(`${by} must be a file such as sessions.db, or postgres://…`)
  }
  if (pathKind(named) === 'folder')
    throw new UsageError(`${by} names a folder, ${named}. Name a file, such as sessions.db.`)
  return { kind: 'sqlite', at: named }
}

function pathKind(path: string): 'file' | 'folder' | undefined {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return found === undefined ? undefined : found.isDirectory() ? 'folder' : 'file'
  } catch (error) {
    throw storeFailed('The store cannot be used', error)
  }
}

/** A database that cannot be reached is reported before anything starts. */
async function openAt(location: Location, mustExist: boolean): Promise<SessionStore> {
  if (mustExist && location.kind === 'sqlite' && pathKind(location.at) === undefined)
    throw new UsageError(`No session store found at ${location.at}.`)
  const store = open(location)
  try {
    if (location.kind === 'postgres') await store.list({ limit: 1 })
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

function open({ kind, at }: Location): SessionStore {
  switch (kind) {
    case 'postgres':
      return postgresStore({ connectionString: at })
    case 'sqlite':
      return sqliteStore(at)
    default:
      return kind satisfies never
  }
}
