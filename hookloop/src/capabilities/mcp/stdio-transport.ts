import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { JSONRPCMessage } from '@modelcontextprotocol/client'
import { messageOf } from '../../errors.ts'
import { CappedOutput, joinCapped } from '../../system/processes/capped-output.ts'
import { executableProblem } from '../../system/processes/executable-problem.ts'
import { minimalEnvironment } from '../../system/processes/minimal-environment.ts'
import { withTagLimit, newTag, TAG_VARIABLE } from '../../system/processes/process-tag.ts'
import { ProcessTree } from '../../system/processes/process-tree.ts'
import { killOnExit } from '../../system/processes/kill-on-exit.ts'
import { waitAtMost } from '../../system/timeout.ts'
import type { Sdk } from './load-sdk.ts'
import type { StdioServer } from './settings.ts'
import { LineReader } from './line-reader.ts'
import { readMessage } from './read-message.ts'
import { FLOODED, MessageBudget, type McpTransport } from './transport.ts'

/** How long a server may take to end by itself after its input has ended, and again after SIGTERM. */
const GRACE_MS = 1_000
/** How long to wait for buffered output of a server that has ended. */
const DRAIN_MS = 500
const MAX_STDERR_BYTES = 2_000
/** How many bytes may wait for a server that does not read its input. */
const MAX_UNREAD_BYTES = 67_108_864

/**
 * A server as a process, with one message per line. Replaces the SDK's transport, because closing it must end all processes
 * that the server has started, and the length and number of messages must be limited.
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
  readonly #budget = new MessageBudget()
  readonly #stderr = new CappedOutput({ head: 0, tail: MAX_STDERR_BYTES })
  #child: ChildProcessWithoutNullStreams | undefined
  #release: () => Promise<void> = async () => undefined
  #closing: Promise<void> | undefined
  #isClosed = false
  #graceMs = GRACE_MS

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
    const tag = newTag()
    const env = minimalEnvironment(declared, { cwd })
    const problem = executableProblem(command, { cwd, path: env['PATH'] })
    if (problem !== undefined) throw this.#failed(problem)
    const [first, ...rest] = withTagLimit([command, ...args], tag)
    const child = spawn(first, rest, {
      cwd,
      env: { ...env, [TAG_VARIABLE]: tag.variable },
      stdio: 'pipe',
      detached: true,
    })
    this.#child = child
    // An idle server must not keep this process alive.
    // Bun's streams have no `unref`.
    for (const part of [child, child.stdin, child.stdout, child.stderr] as unknown as Partial<Socket>[]) part.unref?.()
    child.stdin.on('error', () => undefined) // reported when the process ends
    child.stdout.on('data', (chunk: Buffer) => this.#read(chunk))
    child.stderr.on('data', (chunk: Buffer) => this.#stderr.push(chunk))
    await once(child, 'spawn').catch((thrown: unknown) => {
      throw this.#failed(messageOf(thrown))
    })
    this.#watch(child, new ProcessTree(tag, child.pid!))
  }

  #watch(child: ChildProcessWithoutNullStreams, tree: ProcessTree): void {
    this.pid = child.pid!
    const unregister = killOnExit(tree)
    const exited = once(child, 'exit')
    const drained = once(child, 'close')
    void exited.then(([code, signal]) => {
      this.#failed(signal === null ? `it ended with exit code ${String(code)}` : `it was ended by ${String(signal)}`)
      void this.close()
    })
    this.#release = async () => {
      child.stdin.end()
      await waitAtMost(exited, this.#graceMs).catch(() => undefined)
      await tree.end(this.#graceMs)
      unregister()
      await waitAtMost(drained, DRAIN_MS).catch(() => undefined)
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
    }
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin
    if (stdin === undefined || !stdin.writable) throw new Error('Not connected')
    this.#budget.sent(message)
    const isTaken = stdin.write(this.#sdk.serializeMessage(message))
    if (!isTaken && stdin.writableLength > MAX_UNREAD_BYTES) this.#abort('it does not read its input')
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#release().then(() => this.#closed()))
  }

  #read(chunk: Buffer): void {
    if (this.#isClosed) return
    const lines = this.#lines.read(chunk)
    if (lines === undefined) {
      return this.#abort(`it sent a message of more than ${this.#maxMessageBytes} bytes`)
    }
    for (const line of lines) {
      // Some servers print log messages to stdout.
      const message = line.startsWith('{') ? readMessage(this.#sdk, line, (error) => this.onerror?.(error)) : undefined
      if (!this.#budget.received(message)) return this.#abort(FLOODED)
      if (message !== undefined) this.onmessage?.(message)
    }
  }

  /** Pending requests fail at once; the process is ended in the background. */
  #abort(why: string): void {
    this.#failed(why)
    this.#graceMs = 0
    this.#closed()
    void this.close()
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
