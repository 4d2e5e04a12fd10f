import { execFile } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { PipeStock } from './pipe-stock.ts'
import { makeUnnamedPipes, O_PATH } from './unnamed-pipes.ts'

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
    const taken = await Promise.allSettled([fifos.take(2), withInput ? unnamed.take(1) : []])
    open.push(...taken.flatMap((each) => (each.status === 'fulfilled' ? each.value : [])))
    if (taken.some((each) => each.status === 'rejected')) throw new Error('There are not enough pipes.')
    const [out, err, input] = open
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

/** Pipes are made with a program, and starting one costs more than everything else here: so many at a time. */
const BATCH = 120
/** So many are enough for those that run together most of the time. */
const FEW = 9

const fifos = new PipeStock(makeFifos, FEW)
/** What is read must have no name, and what is written may. */
const unnamed = new PipeStock(makeUnnamedPipes, 3)

/** Without a name in the file system once they are made. */
async function makeFifos(): Promise<readonly number[]> {
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-pipes-'))
  try {
    const paths = Array.from({ length: BATCH }, (_, i) => join(folder, String(i)))
    await new Promise<void>((resolve, reject) => {
      execFile('/usr/bin/mkfifo', ['-m', '600', ...paths], { env: {} }, (error) =>
        error === null ? resolve() : reject(error),
      )
    })
    return openPlaces(paths)
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
