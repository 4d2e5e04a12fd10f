import { statSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Environment } from '../../models/providers.ts'
import { fileStore } from '../../sessions/stores/file-store.ts'
import { postgresStore } from '../../sessions/stores/postgres-store.ts'
import { sqliteStore } from '../../sessions/stores/sqlite-store.ts'
import type { SessionStore } from '../../sessions/stores/store.ts'
import { loadAgent } from '../agents/load-agent.ts'
import { quoted } from '../run/next-steps.ts'
import { UsageError } from '../usage-error.ts'

/** What the command line says about where sessions are. `--no-store` is `false`. */
export type StoreFlags = { readonly store?: string | false; readonly agent?: string }

/** A store that was opened, and what must be typed to get to it again. */
export type OpenStore = {
  readonly store: SessionStore
  /** Nobody named it: it is where sessions of this user are kept unless told otherwise. */
  readonly isDefault: boolean
  /** The options that lead to it, each with a blank before it. */
  readonly flags: string
}

type Where = { readonly kind: 'sqlite' | 'files' | 'postgres'; readonly at: string }

/**
 * Where sessions are: `--store`, or else the store of the agent in `--agent`, or else HOOKLOOP_STORE, or else a database
 * of this user. Nothing if they are not to be kept.
 */
export async function storeFor(flags: StoreFlags, env: Environment): Promise<OpenStore | undefined> {
  if (flags.store === false) return undefined
  if (flags.store !== undefined) {
    const where = whereIs(flags.store, '--store')
    return {
      store: open(where),
      isDefault: false,
      flags: ` --store ${where.kind === 'postgres' ? '…' : quoted(where.at)}`,
    }
  }
  const file = flags.agent === undefined ? undefined : await loadAgent(flags.agent)
  if (file !== undefined && 'options' in file && file.options.store !== undefined) {
    return { store: file.options.store, isDefault: false, flags: '' }
  }
  const named = env['HOOKLOOP_STORE'] ?? ''
  if (named === 'none') return undefined
  if (named !== '') return { store: open(whereIs(named, 'HOOKLOOP_STORE')), isDefault: false, flags: '' }
  return { store: sqliteStore(join(dataFolder(env), 'sessions.db')), isDefault: true, flags: '' }
}

/** The same for commands that only look at what is there: a path with nothing at it is a mistake, not a place to begin. */
export async function existingStore(flags: StoreFlags, env: Environment): Promise<OpenStore> {
  const named = typeof flags.store === 'string' ? flags.store : flags.agent === undefined ? env['HOOKLOOP_STORE'] : ''
  if (named !== undefined && named !== '' && named !== 'none') {
    const { kind, at } = whereIs(named, flags.store === named ? '--store' : 'HOOKLOOP_STORE')
    if (kind !== 'postgres' && kindOfPath(at) === undefined) throw new UsageError(`There are no sessions at ${at}.`)
  }
  const found = await storeFor(flags, env)
  if (found !== undefined) return found
  throw new UsageError('HOOKLOOP_STORE says that nothing is kept. Name a store with --store.')
}

/** Where this user's own files of the command are, as the XDG rules have it. */
export function dataFolder(env: Environment): string {
  const named = env['XDG_DATA_HOME'] ?? ''
  if (isAbsolute(named)) return join(named, 'hookloop') // by the same rules, a relative one is to be ignored
  const local = env['LOCALAPPDATA'] ?? ''
  if (process.platform === 'win32' && local !== '') return join(local, 'hookloop')
  return join(homedir(), '.local', 'share', 'hookloop')
}

function whereIs(named: string, by: string): Where {
  if (/^postgres(ql)?:\/\//.test(named)) return { kind: 'postgres', at: named }
  if (named.trim() === '' || /^[a-z][a-z0-9+.-]*:\/\//i.test(named)) {
    throw new UsageError(`${by}: it must be a file such as sessions.db, a folder, or postgres://…`)
  }
  if (/\.(db|sqlite3?)$/i.test(named)) return { kind: 'sqlite', at: named }
  return { kind: kindOfPath(named) === 'file' ? 'sqlite' : 'files', at: named }
}

function kindOfPath(path: string): 'file' | 'folder' | undefined {
  const found = statSync(path, { throwIfNoEntry: false })
  return found === undefined ? undefined : found.isDirectory() ? 'folder' : 'file'
}

function open({ kind, at }: Where): SessionStore {
  switch (kind) {
    case 'postgres':
      return postgresStore({ connectionString: at })
    case 'sqlite':
      return sqliteStore(at)
    case 'files':
      return fileStore(at)
    default:
      return kind satisfies never
  }
}
