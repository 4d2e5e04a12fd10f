import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { JSONRPCMessage } from '@modelcontextprotocol/client'
import { messageOf } from '../../errors.ts'
import { CappedOutput, joinCapped } from '../../system/processes/capped-output.ts'
import { executableProblem } from '../../system/processes/executable-problem.ts'
import { killOnExit } from '../../system/processes/kill-on-exit.ts'
import { minimalEnvironment } from '../../system/processes/minimal-environment.ts'
import { ProcessGroup } from '../../system/processes/process-group.ts'
import { waitAtMost } from '../../system/timeout.ts'
import { LineReader } from './line-reader.ts'
import type { Sdk } from './load-sdk.ts'
import type { StdioServer } from './settings.ts'
import { FLOODED, MessageRate, type McpTransport } from './transport.ts'

/** How long a server may take to end by itself after its input has ended, and again after SIGTERM. */
const GRACE_MS = 1_000
/** How long to wait for buffered output of a server that has ended. */
const DRAIN_MS = 500
const MAX_STDERR_BYTES = 2_000
/** How many bytes may wait for a server that does not read its input. */
const MAX_UNREAD_BYTES = 67_108_864

/**
 * A server as a process group. The SDK reads and writes its messages. Its own transport is not used, because it ends only the
 * process that it has started, which is often `npx`, and keeps our process alive.
 */
export class StdioTransport implements McpTransport {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: (<T extends JSONRPCMessage>(message: T) => void) | undefined
  ended: string | undefined
  /** The SDK recognizes a process by these two fields. */
  pid: number | null = null
  readonly stderr = null

  readonly #sdk: Sdk
  readonly #server: StdioServer
  readonly #lines: LineReader
  readonly #maxMessageBytes: number
  readonly #rate = new MessageRate()
  readonly #stderr = new CappedOutput({ head: 0, tail: MAX_STDERR_BYTES })
  readonly #group = new ProcessGroup()
  #child: ChildProcessWithoutNullStreams | undefined
  #closing: Promise<void> | undefined
  #isClosed = false

  constructor(sdk: Sdk, server: StdioServer, { maxMessageBytes }: { readonly maxMessageBytes: number }) {
    this.#sdk = sdk
    this.#server = server
    this.#maxMessageBytes = maxMessageBytes
    this.#lines = new LineReader(maxMessageBytes)
  }

  get stderrText(): string {
    return joinCapped(this.#stderr.result())
  }

  async start(): Promise<void> {
    const { command, args = [], env: declared, cwd = process.cwd() } = this.#server
    const env = minimalEnvironment(declared, { cwd })
    const problem = executableProblem(command, { cwd, path: env['PATH'] })
    if (problem !== undefined) throw this.#failed(problem)
    const release = killOnExit(this.#group)
    const child = spawn(command, args, { cwd, env, stdio: 'pipe', detached: true })
    this.#child = child
    this.#group.id = child.pid
    child.once('close', release)
    // An idle server must not keep this process alive. Bun's streams have no `unref`.
    for (const part of [child, child.stdin, child.stdout, child.stderr] as unknown as Partial<Socket>[]) part.unref?.()
    child.stdin.on('error', () => undefined) // reported when the process ends
    child.stdout.on('data', (chunk: Buffer) => this.#read(chunk))
    child.stderr.on('data', (chunk: Buffer) => this.#stderr.push(chunk))
    child.once('exit', (code, signal) => {
      this.#failed(signal === null ? `it ended with exit code ${String(code)}` : `it was ended by ${signal}`)
      void this.close()
    })
    await once(child, 'spawn').catch((thrown: unknown) => {
      throw this.#failed(messageOf(thrown))
    })
    this.pid = child.pid!
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin
    if (stdin === undefined || !stdin.writable) throw new Error('Not connected')
    const isTaken = stdin.write(this.#sdk.serializeMessage(message))
    if (!isTaken && stdin.writableLength > MAX_UNREAD_BYTES) this.#abort('it does not read its input')
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#end(GRACE_MS))
  }

  async #end(graceMs: number): Promise<void> {
    const child = this.#child
    if (child !== undefined) {
      const closed = once(child, 'close')
      child.stdin.end()
      await this.#group.hasEnded(graceMs)
      await this.#group.end(graceMs)
      await waitAtMost(closed, DRAIN_MS)
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
    }
    this.#closed()
  }

  #read(chunk: Buffer): void {
    if (this.#isClosed) return
    const lines = this.#lines.read(chunk)
    if (lines === undefined) return this.#abort(`it sent a message of more than ${this.#maxMessageBytes} bytes`)
    for (const line of lines) {
      if (this.#rate.isExceeded()) return this.#abort(FLOODED)
      // Some servers print log messages to stdout.
      if (line.startsWith('{')) this.#receive(line)
    }
  }

  #receive(line: string): void {
    let message: JSONRPCMessage
    try {
      message = this.#sdk.deserializeMessage(line)
    } catch (thrown) {
      this.onerror?.(thrown as Error)
      return
    }
    this.onmessage?.(message)
  }

  /** Pending requests fail at once; the processes are ended in the background. */
  #abort(why: string): void {
    this.#failed(why)
    this.#closed()
    this.#closing ??= this.#end(0)
  }

  #failed(why: string): Error {
    if (this.#closing === undefined) this.ended ??= why
    return new Error(why)
  }

  #closed(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.onclose?.()
  }
}
