import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { PipeStock } from './pipe-stock.ts'
import { FEW, makeUnnamedPipes, NoPipes } from './unnamed-pipes.ts'

/** The ends of three pipes: those that a process is given, and ours. */
export type RealPipes = {
  readonly given: readonly [stdin: number | 'ignore', stdout: number, stderr: number]
  /** Undefined if nothing is left to be written: as much as a pipe holds is written before anybody reads it. */
  readonly stdin: Writable | undefined
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
  input,
  onOutput,
}: {
  readonly input: Uint8Array | undefined
  /** Told what was written. The bytes are there for as long as the call lasts: the memory is used again. */
  readonly onOutput: (stream: 'stdout' | 'stderr', bytes: Buffer) => void
}): Promise<RealPipes | undefined> {
  if (process.platform !== 'linux' || isImpossible) return undefined
  const open: number[] = []
  try {
    const pipes = await stock.take(input === undefined ? 2 : 3)
    open.push(...pipes)
    const stdout = openReading(pipes[0]!, open)
    const stderr = openReading(pipes[1]!, open)
    const stdin = input === undefined ? undefined : openWriting(pipes[2]!, open)
    const given = [stdin?.given ?? 'ignore', stdout.given, stderr.given] as const
    for (const pipe of pipes) closeSync(pipe)
    return {
      given,
      stdin: stdin && writerOf(stdin.ours, input!),
      stdout: readerOf(stdout.ours, (bytes) => onOutput('stdout', bytes)),
      stderr: readerOf(stderr.ours, (bytes) => onOutput('stderr', bytes)),
      closeGiven: () => {
        for (const fd of given) if (fd !== 'ignore') closeSync(fd)
      },
    }
  } catch (error) {
    for (const fd of open) closeQuietly(fd)
    isImpossible ||= error instanceof NoPipes
    return undefined
  }
}

const stock = new PipeStock(makeUnnamedPipes, FEW)
let isImpossible = false

/** Writes what the pipe holds at once, and gives who writes the rest. Most of what is ever written needs nobody. */
function writerOf(fd: number, input: Uint8Array): Writable | undefined {
  const written = input.length === 0 ? 0 : writeSync(fd, input) // it is empty, so that something fits
  if (written === input.length) {
    closeSync(fd)
    return undefined
  }
  const writer = new Socket({ fd, readable: false, writable: true })
  writer.on('error', () => undefined) // a child that never reads its input, or closes it, is none of our business
  writer.end(input.subarray(written))
  return writer
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

/** Ours must not block and theirs must. Who opens a pipe for writing needs somebody who reads. */
function openReading(pipe: number, open: number[]): Ends {
  const ours = openEnd(pipe, constants.O_RDONLY | constants.O_NONBLOCK, open)
  return { ours, given: openEnd(pipe, constants.O_WRONLY, open) }
}

function openWriting(pipe: number, open: number[]): Ends {
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
    // closed before
  }
}
