import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { createInterface } from 'node:readline'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'

export type Place = { readonly kind: 'sqlite' | 'postgres'; readonly place: string; readonly world: string }

export type SessionProcess = {
  readonly process: ChildProcessByStdio<null, Readable, Readable>
  /** What it says, line by line. */
  readonly lines: readonly string[]
  /** When it has said its first line, or has ended. */
  readonly spoke: Promise<unknown>
  /** How it ended: the signal, or what it returned. */
  readonly ended: Promise<string | number | null>
  readonly errors: () => string
}

/** A folder that is gone when the tests of the file are. */
export const folder = mkdtempSync(join(tmpdir(), 'hookloop-sessions-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** One file, compiled once: a test that kills hundreds of processes has to start as many. */
const script = join(folder, 'session-process.mjs')
buildSync({
  entryPoints: [fileURLToPath(new URL('session-process.fixture.ts', import.meta.url))],
  outfile: script,
  bundle: true,
  platform: 'node',
  format: 'esm',
  external: ['pg-native', 'cloudflare:sockets'],
  define: { 'import.meta.url': JSON.stringify(import.meta.url) }, // what is loaded when it is needed is found from here
  banner: {
    js: `import { createRequire as toRequire } from 'node:module'; const require = toRequire(${JSON.stringify(import.meta.url)})`,
  },
  logLevel: 'error',
})

export function start(
  { kind, place, world }: Place,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): SessionProcess {
  const child = spawn(process.execPath, ['--no-warnings', script, kind, place, world, ...args], {
    env: { ...process.env, NODE_COMPILE_CACHE: join(folder, 'compiled'), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  const output = createInterface({ input: child.stdout })
  output.on('line', (line) => lines.push(line))
  let errors = ''
  child.stderr.on('data', (text) => (errors += String(text)))
  return {
    process: child,
    lines,
    spoke: new Promise((resolve) => output.once('line', resolve).once('close', resolve)),
    ended: new Promise((resolve) => child.on('close', (code, signal) => resolve(signal ?? code))),
    errors: () => errors,
  }
}

/** What was really done, as often as it was: the session, what, and the key of the call. */
export function doneIn({ world }: Place): readonly { session: string; what: string; key: string }[] {
  let text = ''
  try {
    text = readFileSync(world, 'utf8')
  } catch {
    // nothing was done yet
  }
  const lines = text.split('\n').filter((line) => line !== '')
  return lines.map((line) => {
    const [session = '', what = '', key = ''] = line.split(' ')
    return { session, what, key }
  })
}
