import { execFile } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

/** The ends of three pipes: those that a process is given, and ours. */
export type RealPipes = {
  readonly given: readonly [stdin: number | 'ignore', stdout: number, stderr: number]
  readonly stdin: Writable | null
  /** They end, and give nothing: what is read goes to `onOutput`. */
  readonly stdout: Readable
  readonly stderr: Readable
  /** To be called once the process has its ends: a pipe ends when nobody holds the other one. */
  readonly closeGiven: () => void
}

/**
 * What Node connects a child with are sockets. On Linux a program cannot open `/dev/stdout` if it is one, and a shell that
 * reads from one takes itself for a remote login and runs the user's start-up file. So these are pipes. Undefined where
 * there is no need for them, or no way to make them.
 */
export async function openRealPipes({
  withInput,
  onOutput,
}: {
  readonly withInput: boolean
  /** Told what was written. The bytes are there for as long as the call lasts: the memory is used again. */
  readonly onOutput: (stream: 'stdout' | 'stderr', bytes: Buffer) => void
}): Promise<RealPipes | undefined> {
  if (process.platform !== 'linux') return undefined
  const open: number[] = []
  try {
    const [out, err, input] = await takeFifos(withInput ? 3 : 2)
    open.push(...[out!, err!, input].filter((fd) => fd !== undefined))
    const stdout = openReading(out!, open)
    const stderr = openReading(err!, open)
    const stdin = input === undefined ? undefined : openWriting(input, open)
    const given = [stdin?.given ?? 'ignore', stdout.given, stderr.given] as const
    for (const fifo of [out, err, input]) if (fifo !== undefined) closeSync(fifo)
    return {
      given,
      stdin: stdin === undefined ? null : new Socket({ fd: stdin.ours, readable: false, writable: true }),
      stdout: readerOf(stdout.ours, (bytes) => onOutput('stdout', bytes)),
      stderr: readerOf(stderr.ours, (bytes) => onOutput('stderr', bytes)),
      closeGiven: () => {
        for (const fd of given) if (fd !== 'ignore') closeSync(fd)
      },
    }
  } catch {
    for (const fd of open) closeQuietly(fd)
    return undefined
  }
}

const READ_BYTES = 65_536

/** Reads into the same memory again and again: a flood is no work for the garbage collector. */
function readerOf(fd: number, take: (bytes: Buffer) => void): Readable {
  const buffer = buffers.pop() ?? Buffer.allocUnsafeSlow(READ_BYTES)
  const callback = (length: number): boolean => {
    take(buffer.subarray(0, length))
    return true
  }
  const reader = new Socket({ fd, readable: true, writable: false, onread: { buffer, callback } })
  reader.once('close', () => void (buffers.length < MAX_BUFFERS && buffers.push(buffer)))
  return reader.resume()
}

/** For the next reader. */
const buffers: Buffer[] = []
const MAX_BUFFERS = 8

type Ends = { readonly given: number; readonly ours: number }

/** Ours must not block and theirs must. A pipe without a writer can be opened for reading at once only without blocking. */
function openReading(fifo: number, open: number[]): Ends {
  const ours = openFifo(fifo, constants.O_RDONLY | constants.O_NONBLOCK, open)
  return { ours, given: openFifo(fifo, constants.O_WRONLY, open) }
}

function openWriting(fifo: number, open: number[]): Ends {
  const both = openFifo(fifo, constants.O_RDWR, open)
  const given = openFifo(fifo, constants.O_RDONLY, open)
  const ours = openFifo(fifo, constants.O_WRONLY | constants.O_NONBLOCK, open)
  closeSync(both)
  return { given, ours }
}

function openFifo(fifo: number, flags: number, open: number[]): number {
  const fd = openSync(`/proc/self/fd/${fifo}`, flags)
  open.push(fd)
  return fd
}

/** Opens a file as a place, neither for reading nor for writing. Node has no name for it. */
const O_PATH = 0o10000000
/** Pipes are made with a program, and starting one costs more than everything else here: so many at a time. */
const BATCH = 120
/** With fewer than so many left, more are made before somebody has to wait for them. */
const FEW = 9
/** After so long only a few are held ready, and after so much longer none. */
const IDLE_MS = 1_000
const FORGOTTEN_MS = 60_000

/** Made and not yet used, without a name in the file system. Each is used once. */
const spare: number[] = []
let making: Promise<void> | undefined
let idle: NodeJS.Timeout | undefined

async function takeFifos(count: number): Promise<readonly number[]> {
  while (spare.length < count) await makeMore()
  closeLater()
  const taken = spare.splice(0, count)
  if (spare.length < FEW) makeMore().catch(() => undefined) // whoever needs them next is told why there are none
  return taken
}

function makeMore(): Promise<void> {
  making ??= makeFifos()
    .then(closeLater) // also those that came after the last was taken are not held for long
    .finally(() => (making = undefined))
  return making
}

function closeLater(): void {
  clearTimeout(idle)
  idle = setTimeout(closeMost, IDLE_MS).unref()
}

function closeMost(): void {
  for (const fd of spare.splice(FEW)) closeSync(fd)
  idle = setTimeout(closeAll, FORGOTTEN_MS).unref()
}

function closeAll(): void {
  for (const fd of spare.splice(0)) closeSync(fd)
}

async function makeFifos(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-pipes-'))
  try {
    const paths = Array.from({ length: BATCH }, (_, i) => join(folder, String(i)))
    await new Promise<void>((resolve, reject) => {
      execFile('/usr/bin/mkfifo', ['-m', '600', ...paths], { env: {} }, (error) =>
        error === null ? resolve() : reject(error),
      )
    })
    spare.push(...openPlaces(paths))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** All of them, or a few where this process must not have more files open. */
function openPlaces(paths: readonly string[]): readonly number[] {
  const opened: number[] = []
  try {
    for (const path of paths) opened.push(openSync(path, O_PATH))
  } catch (error) {
    const isEnough = opened.length >= FEW
    for (const fd of opened.splice(isEnough ? FEW : 0)) closeSync(fd)
    if (!isEnough) throw error
  }
  return opened
}

function closeQuietly(fd: number): void {
  try {
    closeSync(fd)
  } catch {
    // closed before
  }
}
