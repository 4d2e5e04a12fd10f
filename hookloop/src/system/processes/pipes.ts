import { spawn } from 'node:child_process'
import { closeSync, constants, fstatSync, openSync, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'

/** The ends of three pipes: those for the child process, and ours. */
export type Pipes = {
  readonly given: readonly [stdin: number | 'ignore', stdout: number, stderr: number]
  /** Undefined if the input fitted into the pipe and is written already. */
  readonly stdin: Writable | undefined
  /** They emit no data, only their end: the bytes go to `onOutput`. */
  readonly stdout: Readable
  readonly stderr: Readable
  /** Call it once the child has its ends: a pipe ends when no process has the other end open. */
  readonly closeGiven: () => void
}

/**
 * Node connects a child with sockets. On Linux a program cannot open `/dev/stdout` if it is a socket, and a shell that
 * reads from one takes it for a remote login and runs the user's start-up file. So these are pipes. Returns undefined where
 * they are not needed or cannot be made, as on Bun, whose sockets read no pipe. The buffer that `onOutput` gets is reused after the call.
 */
export async function openPipes(
  input: Uint8Array | undefined,
  onOutput: (stream: 'stdout' | 'stderr', bytes: Buffer) => void,
): Promise<Pipes | undefined> {
  if (process.platform !== 'linux' || isImpossible || process.versions['bun'] !== undefined) return undefined
  const open: number[] = []
  try {
    const pipes = await spares.take(input === undefined ? 2 : 3)
    open.push(...pipes)
    const stdout = openForReading(pipes[0]!, open)
    const stderr = openForReading(pipes[1]!, open)
    const stdin = input === undefined ? undefined : openForWriting(pipes[2]!, open)
    const given = [stdin?.given ?? 'ignore', stdout.given, stderr.given] as const
    for (const pipe of pipes) closeSync(pipe)
    return {
      given,
      stdin: stdin && startWriting(stdin.ours, input!),
      stdout: startReading(stdout.ours, (bytes) => onOutput('stdout', bytes)),
      stderr: startReading(stderr.ours, (bytes) => onOutput('stderr', bytes)),
      closeGiven: () => {
        for (const fd of given) if (fd !== 'ignore') closeSync(fd)
      },
    }
  } catch (error) {
    for (const fd of open) closeQuietly(fd)
    isImpossible ||= error instanceof NotPipes
    return undefined
  }
}

let isImpossible = false

/** Writes as much as the pipe holds at once, and returns a stream only for what is left: most inputs fit. */
function startWriting(fd: number, input: Uint8Array): Writable | undefined {
  const written = input.length === 0 ? 0 : writeSync(fd, input) // the pipe is empty, so some bytes fit
  if (written === input.length) {
    closeSync(fd)
    return undefined
  }
  const writer = new Socket({ fd, readable: false, writable: true })
  writer.on('error', () => undefined) // the child may close its input without reading it
  writer.end(input.subarray(written))
  return writer
}

const READ_BYTES = 65_536

/** Reads into one reused buffer, so that a flood of output creates no garbage. */
function startReading(fd: number, take: (bytes: Buffer) => void): Readable {
  const buffer = buffers.pop() ?? Buffer.allocUnsafeSlow(READ_BYTES)
  const callback = (length: number): boolean => {
    take(buffer.subarray(0, length))
    return true
  }
  const reader = new Socket({ fd, readable: true, writable: false, onread: { buffer, callback } })
  reader.once('close', () => void (buffers.length < MAX_BUFFERS && buffers.push(buffer)))
  return reader.resume()
}

const buffers: Buffer[] = []
const MAX_BUFFERS = 8

type Ends = { readonly given: number; readonly ours: number }

/** Our end must not block, the child's must. The reading end is opened first: opening for writing needs a reader. */
function openForReading(pipe: number, open: number[]): Ends {
  const ours = openEnd(pipe, constants.O_RDONLY | constants.O_NONBLOCK, open)
  return { ours, given: openEnd(pipe, constants.O_WRONLY, open) }
}

function openForWriting(pipe: number, open: number[]): Ends {
  const given = openEnd(pipe, constants.O_RDONLY, open)
  return { given, ours: openEnd(pipe, constants.O_WRONLY | constants.O_NONBLOCK, open) }
}

function openEnd(pipe: number, flags: number, open: number[]): number {
  const fd = openSync(`/proc/self/fd/${pipe}`, flags)
  open.push(fd)
  return fd
}

function closeQuietly(fd: number): void {
  try {
    closeSync(fd)
  } catch {
    // already closed
  }
}

/** As many spare pipes as the commands that usually run at the same time need. */
const MIN_SPARES = 9
/** Pipes above the minimum are closed after the first time, the others after the second. */
const CLOSE_MOST_AFTER_MS = 1_000
const CLOSE_ALL_AFTER_MS = 60_000

/** Pipes that are made ahead of use, because making them starts a shell. Each is used once. */
class SparePipes {
  readonly #spare: number[] = []
  #making: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined

  async take(count: number): Promise<readonly number[]> {
    while (this.#spare.length < count) await this.#makeMore()
    this.#closeLater()
    const taken = this.#spare.splice(0, count)
    if (this.#spare.length < MIN_SPARES) this.#makeMore().catch(() => undefined) // the next `take` gets the error
    return taken
  }

  #makeMore(): Promise<void> {
    this.#making ??= makeUnnamedPipes()
      .then((made) => {
        this.#spare.push(...made)
        this.#closeLater()
      })
      .finally(() => (this.#making = undefined))
    return this.#making
  }

  #closeLater(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#close(MIN_SPARES)
      this.#timer = setTimeout(() => this.#close(0), CLOSE_ALL_AFTER_MS).unref()
    }, CLOSE_MOST_AFTER_MS).unref()
  }

  #close(from: number): void {
    for (const fd of this.#spare.splice(from)) closeSync(fd)
  }
}

const spares = new SparePipes()

/** Opens a file as a location, neither for reading nor for writing. Node has no constant for it. */
const O_PATH = 0o10000000
/** Free file descriptors of a shell with one digit, which every shell supports: 0 to 2 are standard, 9 is used below. */
const DESCRIPTORS = [3, 4, 5, 6, 7, 8]
/** Starting a program costs more than everything else here, so it makes many pipes, in forked shells. */
const SHELLS = 20

/** The shell of this machine uses files for here-documents, as bash did before 5.1. */
class NotPipes extends Error {}

/** A here-document is read from a pipe. Each shell prints its pid, and keeps its pipes open until our end of stdin closes. */
const script = `exec 9<&0
for i in ${Array.from({ length: SHELLS }, (_, i) => i).join(' ')}; do (
exec ${DESCRIPTORS.map((n) => `${n}<<x`).join(' ')}
${'.\nx\n'.repeat(DESCRIPTORS.length)}read pid rest < /proc/self/stat
echo $pid
read line <&9
) & done
wait`

/**
 * Makes unnamed pipes, opened with O_PATH; Linux only. Node cannot make them, and a named pipe behaves differently: after all
 * input was read, a program that opens it once more, as `cat /dev/stdin` does, would wait forever for a writer.
 */
async function makeUnnamedPipes(): Promise<readonly number[]> {
  const shell = spawn('/bin/sh', ['-c', script], { env: {}, stdio: ['pipe', 'pipe', 'ignore'] })
  const ended = new Promise<void>((resolve) => shell.once('exit', () => resolve()).once('error', () => resolve()))
  try {
    return openPaths(await readPids(shell.stdout))
  } finally {
    shell.stdin.on('error', () => undefined).end()
    await ended // including its forks: the pipes still hold the here-documents until these have closed them
  }
}

/** All of them, or the minimum where this process may not open more files. */
function openPaths(pids: readonly string[]): readonly number[] {
  const opened: number[] = []
  try {
    for (const pid of pids) for (const n of DESCRIPTORS) opened.push(openSync(`/proc/${pid}/fd/${n}`, O_PATH))
    if (!fstatSync(opened[0]!).isFIFO()) throw new NotPipes()
  } catch (error) {
    const isEnough = opened.length >= MIN_SPARES && !(error instanceof NotPipes)
    for (const fd of opened.splice(isEnough ? MIN_SPARES : 0)) closeSync(fd)
    if (!isEnough) throw error
  }
  return opened
}

async function readPids(stdout: AsyncIterable<Buffer>): Promise<readonly string[]> {
  let text = ''
  for await (const bytes of stdout) {
    text += bytes.toString('latin1')
    const lines = text.split('\n')
    if (lines.length > SHELLS) return lines.slice(0, SHELLS)
  }
  throw new Error('The shell ended early.')
}
