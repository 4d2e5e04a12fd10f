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
import { LineReader } from './line-reader.ts'
import { unanswered, type Link } from './link.ts'
import type { Sdk } from './load-sdk.ts'
import { floodWords, MessageBudget } from './message-budget.ts'
import type { StdioServer } from './settings.ts'

/** How long a server may take to end by itself once its input has ended, and again when it is asked to. */
const GRACE_MS = 1_000
/** How long to wait for what an ended server has written and nobody has read yet. */
const DRAIN_MS = 500
const MAX_COMPLAINTS = 2_000
/** What may wait to be read by a server that does not read. */
const MAX_UNREAD_BYTES = 67_108_864

/**
 * A server as a process: one message a line. Not the SDK's own, because closing this one ends everything the server has
 * started, and no line, flood or silence of it costs more than is allowed.
 */
export class StdioLink implements Link {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: (<T extends JSONRPCMessage>(message: T) => void) | undefined
  ended: string | undefined
  /** The SDK tells by these two that it speaks to a process. */
  pid: number | null = null
  readonly stderr = null

  readonly #sdk: Sdk
  readonly #server: StdioServer
  readonly #lines: LineReader
  readonly #maxMessageBytes: number
  readonly #budget = new MessageBudget()
  readonly #complaints = new CappedOutput({ head: 0, tail: MAX_COMPLAINTS })
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

  get complaints(): string {
    return joinCapped(this.#complaints.result())
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
    // Only work under way keeps this process alive, not a server that waits for some.
    for (const part of [child, child.stdin, child.stdout, child.stderr] as unknown as Socket[]) part.unref()
    child.stdin.on('error', () => undefined) // that nobody reads is told when the process ends
    child.stdout.on('data', (chunk: Buffer) => this.#read(chunk))
    child.stderr.on('data', (chunk: Buffer) => this.#complaints.push(chunk))
    await once(child, 'spawn').catch((thrown: unknown) => {
      throw this.#failed(messageOf(thrown))
    })
    this.#watch(child, new ProcessTree(tag, child.pid!))
  }

  #watch(child: ChildProcessWithoutNullStreams, tree: ProcessTree): void {
    this.pid = child.pid!
    const forget = killOnExit(tree)
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
      forget()
      await waitAtMost(drained, DRAIN_MS).catch(() => undefined)
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
    }
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin
    if (stdin === undefined || !stdin.writable) throw new Error('Not connected')
    this.#budget.sent(message)
    const isTaken = stdin.write(this.#sdk.serializeMessage(message))
    if (!isTaken && stdin.writableLength > MAX_UNREAD_BYTES) this.#breakOff('it does not read what it is sent')
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#release().then(() => this.#closed()))
  }

  #read(chunk: Buffer): void {
    if (this.#isClosed) return
    const lines = this.#lines.read(chunk)
    if (lines === undefined) {
      return this.#breakOff(`it sent a message of more than ${this.#maxMessageBytes} bytes`)
    }
    for (const line of lines) {
      // Servers print to their output what belongs elsewhere.
      const message = line.startsWith('{') ? this.#parse(line) : undefined
      if (!this.#budget.received(message)) return this.#breakOff(floodWords)
      if (message !== undefined) this.onmessage?.(message)
    }
  }

  /** A line that is no message is passed over, unless somebody waits for it. */
  #parse(line: string): JSONRPCMessage | undefined {
    try {
      return this.#sdk.deserializeMessage(line)
    } catch (thrown) {
      this.onerror?.(thrown as Error)
      const id = idOf(line)
      return id === undefined ? undefined : unanswered(id, 'what it sent is no answer')
    }
  }

  /** Whoever waits for an answer is told at once; the process is ended behind their backs. */
  #breakOff(why: string): void {
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

/** The request that a broken answer was meant for. */
function idOf(line: string): string | number | undefined {
  try {
    const { id, method } = JSON.parse(line) as { id?: unknown; method?: unknown }
    return method === undefined && (typeof id === 'string' || typeof id === 'number') ? id : undefined
  } catch {
    return undefined
  }
}
