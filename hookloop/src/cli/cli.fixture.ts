import { spawn } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { registerHooks } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { runCli } from './index.ts'
import type { Output } from './terminal/screen.ts'

export type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string }

export type Started = {
  readonly ended: Promise<Ended>
  readonly kill: (signal: NodeJS.Signals) => void
  /** Closes the pipe that it writes to. */
  readonly stopReading: () => void
  /** Resolves when it has written this to stdout. */
  readonly wrote: (text: RegExp) => Promise<void>
  /** Resolves with the first line on stdout. */
  readonly firstLine: () => Promise<string>
}

export type StartOptions = {
  readonly env?: NodeJS.ProcessEnv
  readonly input?: string | Uint8Array
  readonly cwd?: string
}

/** The data and settings of the user of a test. */
const data = mkdtempSync(join(tmpdir(), 'hookloop-data-'))
process.on('exit', () => rmSync(data, { recursive: true, force: true, maxRetries: 10 }))

const bin = fileURLToPath(new URL('../../bin/hookloop.mjs', import.meta.url))

const NODE_COMPILE_CACHE = fileURLToPath(new URL('../../../.cache/compiled', import.meta.url))

/** The environment of a command: nothing of this machine, and no Ollama server. */
function environment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { PATH } = process.env
  const own = { HOME: data, XDG_DATA_HOME: data, XDG_CONFIG_HOME: data, OLLAMA_HOST: '127.0.0.1:9' }
  return { PATH, NODE_COMPILE_CACHE, ...own, ...env }
}

let last: Promise<unknown> = Promise.resolve()

/**
 * Runs a command in this process, with its own streams, environment and working folder. The environment and the folder belong
 * to the process, so commands run one after the other.
 */
export function hookloop(args: readonly string[], options: StartOptions = {}): Promise<Ended> {
  const ended = last.then(() => runHere(args, options))
  last = ended.catch(() => undefined)
  return ended
}

async function runHere(
  args: readonly string[],
  { env = {}, input = '', cwd = tmpdir() }: StartOptions,
): Promise<Ended> {
  const before = { env: { ...process.env }, cwd: process.cwd() }
  const [out, err] = [new Captured(), new Captured()]
  const stdin = Readable.from(input.length === 0 ? [] : [Buffer.from(input)])
  setEnvironment(environment(env))
  process.chdir(cwd)
  runs++
  try {
    const code = await runCli(args, { stdin, out, err, env: process.env, command: 'hookloop' })
    return { code, stdout: out.text, stderr: err.text }
  } finally {
    process.chdir(before.cwd)
    setEnvironment(before.env)
  }
}

function setEnvironment(env: NodeJS.ProcessEnv): void {
  const isOwn = (name: string): boolean => name.startsWith('HOOKLOOP_TEST_') // the test reporter reads them at any time
  for (const name of Object.keys(process.env)) if (!isOwn(name)) delete process.env[name]
  for (const [name, value] of Object.entries(env)) if (value !== undefined) process.env[name] = value
}

class Captured extends Writable {
  text = ''

  override _write(piece: Buffer, _encoding: string, done: () => void): void {
    this.text += piece.toString('utf8')
    done()
  }
}

// Each command loads its agent files again, as a new process would.
let runs = 0
const folder = pathToFileURL(realpathSync(tmpdir())).href
const repository = new URL('../../../', import.meta.url).href // which may itself be below the temporary folder
registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context)
    const isAgentFile = isTemporary(resolved.url) && /\.m?[jt]s$/.test(resolved.url)
    return isAgentFile ? { ...resolved, url: `${resolved.url}?run=${runs}` } : resolved
  },
})

function isTemporary(url: string): boolean {
  return url.startsWith(folder) && !url.startsWith(repository)
}

/** Starts a command as a process, from the sources. */
export function start(args: readonly string[], { env = {}, input = '', cwd = tmpdir() }: StartOptions = {}): Started {
  const child = spawn(process.execPath, ['--conditions=hookloop-source', bin, ...args], {
    cwd,
    env: environment(env),
    timeout: 180_000,
    killSignal: 'SIGKILL', // a test that fails leaves no process
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  child.stdin.on('error', () => undefined).end(input)
  const wrote = async (text: RegExp): Promise<void> => {
    while (!text.test(stdout)) {
      if (child.exitCode !== null) throw new Error(`It ended without writing ${String(text)}: ${stdout}${stderr}`)
      await sleep(5)
    }
  }
  return {
    ended: new Promise((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (code) => resolve({ code, stdout, stderr }))
    }),
    kill: (signal) => void child.kill(signal),
    stopReading: () => void child.stdout.destroy(),
    wrote,
    async firstLine() {
      await wrote(/\n/)
      return stdout.slice(0, stdout.indexOf('\n'))
    },
  }
}

/** A server on this machine, closed by `await using`. */
export async function serve(listener: RequestListener): Promise<{ readonly host: string } & AsyncDisposable> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Two streams to one terminal, and what was written to both, in order. */
export function terminal(columns = 100): {
  readonly out: Output
  readonly err: Output
  readonly written: () => string
} {
  let text = ''
  const stream: Output = { isTTY: true, columns, write: (piece) => (text += piece) }
  return { out: stream, err: { ...stream }, written: () => text }
}

/** Streams that are pipes. */
export function pipes(): {
  readonly out: Output
  readonly err: Output
  readonly stdout: () => string
  readonly stderr: () => string
} {
  const written = { out: '', err: '' }
  return {
    out: { write: (piece) => (written.out += piece) },
    err: { write: (piece) => (written.err += piece) },
    stdout: () => written.out,
    stderr: () => written.err,
  }
}
