import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Output } from './terminal/screen.ts'

export type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string }

export type Started = {
  readonly ended: Promise<Ended>
  readonly kill: (signal: NodeJS.Signals) => void
  /** Nobody reads its output any more. */
  readonly stopReading: () => void
  /** Resolves when it has written this to stdout. */
  readonly wrote: (text: RegExp) => Promise<void>
}

export type StartOptions = {
  readonly env?: NodeJS.ProcessEnv
  readonly input?: string | Uint8Array
  readonly cwd?: string
}

/** Where the command keeps what is the user's: nobody's sessions are touched by a test. */
const data = mkdtempSync(join(tmpdir(), 'hookloop-data-'))
process.on('exit', () => rmSync(data, { recursive: true, force: true }))

const bin = fileURLToPath(new URL('../../bin/hookloop.mjs', import.meta.url))

/** What was compiled for one process need not be for the next: most of the time of a short one. */
const NODE_COMPILE_CACHE = fileURLToPath(new URL('../../../.cache/compiled', import.meta.url))

/** The command as a process of its own, from the sources, with nothing of this machine in its environment. */
export function start(args: readonly string[], { env = {}, input = '', cwd = tmpdir() }: StartOptions = {}): Started {
  const { PATH } = process.env
  const child = spawn(process.execPath, ['--conditions=hookloop-source', bin, ...args], {
    cwd,
    // nothing listens there, and nobody has settings
    env: {
      PATH,
      HOME: data,
      NODE_COMPILE_CACHE,
      XDG_DATA_HOME: data,
      XDG_CONFIG_HOME: data,
      OLLAMA_HOST: '127.0.0.1:9',
      ...env,
    },
    timeout: 180_000,
    killSignal: 'SIGKILL', // a test that fails leaves nothing behind
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  child.stdin.on('error', () => undefined).end(input)
  return {
    ended: new Promise((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (code) => resolve({ code, stdout, stderr }))
    }),
    kill: (signal) => void child.kill(signal),
    stopReading: () => void child.stdout.destroy(),
    async wrote(text) {
      while (!text.test(stdout)) {
        if (child.exitCode !== null) throw new Error(`It ended without writing ${String(text)}: ${stdout}${stderr}`)
        await sleep(5)
      }
    },
  }
}

export function hookloop(args: readonly string[], options?: StartOptions): Promise<Ended> {
  return start(args, options).ended
}

/** A server on this machine that goes away with `await using`. */
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

/** Streams as they look in one terminal: what is written to both, in order. */
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
