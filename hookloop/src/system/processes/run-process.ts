import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { messageOf } from '../../errors.ts'
import { abortable, Deadline, waitAtMost } from '../timeout.ts'
import { CappedOutput, type CappedText, type OutputCap } from './capped-output.ts'
import { executableProblem } from './executable-problem.ts'
import { killOnExit } from './kill-on-exit.ts'
import { ProcessGroup } from './process-group.ts'

/** A program with its arguments, or a line for a shell. */
export type Command =
  | readonly [string, ...string[]]
  | {
      readonly shell: 'sh' | 'bash'
      readonly line: string
    }

export type ProcessOutput = { readonly stream: 'stdout' | 'stderr'; readonly text: string }

export type ProcessOptions = {
  readonly cwd: string
  /** The complete environment: nothing is inherited. See `minimalEnvironment`. */
  readonly env: Readonly<Record<string, string>>
  /** Its standard input; empty by default. The process need not read it. */
  readonly input?: string | Uint8Array
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** Bytes stored of the start and the end of each stream. */
  readonly output: OutputCap
  readonly onOutput?: (output: ProcessOutput) => void
}

export type ProcessResult = {
  /** Null if it did not start or was ended by a signal. */
  readonly exitCode: number | null
  readonly signal: string | null
  readonly ended: 'exited' | 'timedOut' | 'cancelled' | 'notStarted'
  readonly stdout: CappedText
  readonly stderr: CappedText
  /** Whether it left processes of its group running. They were ended. */
  readonly leftBehind: boolean
  /** Why it did not start, or that processes could not be ended. */
  readonly problem?: string
}

/** Between SIGTERM and SIGKILL. */
const KILL_AFTER_MS = 200
/** How long background processes, such as the last reader of a pipe, may take to end by themselves. */
const LINGER_MS = 200
/** How long to wait for buffered output once all processes have ended. */
const DRAIN_MS = 500

/**
 * Runs a program to its end and never throws. The program has no terminal, its own process group and session, and only the
 * given environment. Its group ends with it: on timeout, on cancel, when this process ends, and when it exits.
 */
export async function runProcess(command: Command, options: ProcessOptions): Promise<ProcessResult> {
  const running = new Running(options)
  if (options.signal?.aborted === true) return running.result({ ended: 'cancelled', problem: 'It was not started.' })
  return running.start(command)
}

type Ending = Partial<ProcessResult> & { readonly ended: ProcessResult['ended'] }
type Exit = { readonly exitCode: number | null; readonly signal: string | null }

class Running {
  readonly #options: ProcessOptions
  readonly #stored: { readonly stdout: CappedOutput; readonly stderr: CappedOutput }

  constructor(options: ProcessOptions) {
    this.#options = options
    this.#stored = { stdout: new CappedOutput(options.output), stderr: new CappedOutput(options.output) }
  }

  result(ending: Ending): ProcessResult {
    return {
      exitCode: null,
      signal: null,
      stdout: this.#stored.stdout.result(),
      stderr: this.#stored.stderr.result(),
      leftBehind: false,
      ...ending,
    }
  }

  async start(command: Command): Promise<ProcessResult> {
    const group = new ProcessGroup()
    const release = killOnExit(group)
    try {
      const child = startChild(command, this.#options)
      group.id = child.pid
      const exited = exitOf(child)
      if (child.pid === undefined) return this.#notStarted(command, await exited)
      return await this.#follow(child, { exited, group })
    } catch (thrown) {
      return this.#notStarted(command, thrown)
    } finally {
      release()
    }
  }

  #notStarted(command: Command, thrown: unknown): ProcessResult {
    const { cwd, env } = this.#options
    const program = 'line' in command ? command.shell : command[0]
    const problem = executableProblem(program, { cwd, path: env['PATH'] }) ?? startProblem(thrown)
    return this.result({ ended: 'notStarted', problem })
  }

  async #follow(
    { stdout, stderr }: ChildProcess,
    { exited, group }: { readonly exited: Promise<Exit | Error>; readonly group: ProcessGroup },
  ): Promise<ProcessResult> {
    const drained = Promise.all([this.#read(stdout!, 'stdout'), this.#read(stderr!, 'stderr')])
    const deadline = new Deadline(this.#options.signal)
    const { timeoutMs } = this.#options
    if (timeoutMs !== undefined) deadline.start(timeoutMs, () => new Error('timed out'))
    try {
      const ended = await waitForEnd(exited, deadline)
      const leftBehind = ended === 'exited' && !(await group.hasEnded(LINGER_MS))
      const isOver = (ended === 'exited' && !leftBehind) || (await group.end(KILL_AFTER_MS))
      await within(drained, DRAIN_MS)
      const exit = await within(exited, DRAIN_MS)
      return this.result({
        ended,
        leftBehind,
        ...(exit !== undefined && !(exit instanceof Error) && exit),
        ...(!isOver && { problem: 'Some of its processes could not be ended, and may still be running.' }),
      })
    } finally {
      deadline.clear()
      stdout!.destroy()
      stderr!.destroy()
    }
  }

  /** Always reads, so that a process never waits for a slow listener. */
  #read(from: Readable, stream: ProcessOutput['stream']): Promise<void> {
    const decoder = new StringDecoder('utf8')
    return new Promise((resolve) => {
      from.on('data', (bytes: Buffer) => {
        this.#stored[stream].push(bytes)
        if (this.#options.onOutput !== undefined) this.#report(stream, decoder.write(bytes))
      })
      from.on('error', () => undefined) // its end is all that matters
      from.on('close', () => {
        this.#report(stream, decoder.end())
        resolve()
      })
    })
  }

  #report(stream: ProcessOutput['stream'], text: string): void {
    if (text === '') return
    try {
      this.#options.onOutput?.({ stream, text })
    } catch {
      // an error of the listener must not break the process
    }
  }
}

function startChild(command: Command, { cwd, env, input }: ProcessOptions): ChildProcess {
  const [program, ...words] = 'line' in command ? [command.shell, '-c', command.line] : command
  const stdin = input === undefined ? 'ignore' : openInput(input)
  try {
    return spawn(program, words, { cwd, env, stdio: [stdin, 'pipe', 'pipe'], detached: true })
  } finally {
    if (stdin !== 'ignore') closeSync(stdin)
  }
}

/**
 * The input as a file that has no name any more. Node's own pipes are sockets: on Linux a program cannot open `/dev/stdin` if it
 * is a socket, and bash takes it for a remote login and runs the user's start-up file.
 */
function openInput(input: string | Uint8Array): number {
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-input-'))
  try {
    const path = join(folder, 'input')
    writeFileSync(path, input, { mode: 0o600 })
    return openSync(path, 'r')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function waitForEnd(exited: Promise<unknown>, deadline: Deadline): Promise<'exited' | 'timedOut' | 'cancelled'> {
  try {
    await abortable(exited, deadline.signal)
    return 'exited'
  } catch {
    if (deadline.expired === undefined) return 'cancelled'
    return (await unlessArrived(exited)) === undefined ? 'timedOut' : 'exited'
  }
}

function exitOf(child: ChildProcess): Promise<Exit | Error> {
  return new Promise((resolve) => {
    child.on('error', resolve)
    child.on('exit', (exitCode, signal) => resolve({ exitCode, signal }))
  })
}

/** After this process was busy, its timers fire before it has read what arrived in the meantime: that is read first. */
async function unlessArrived<T>(work: Promise<T>): Promise<T | undefined> {
  return Promise.race([work, nextTurn().then(() => nextTurn(undefined))])
}

async function within<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
  return (await waitAtMost(work, ms)) ?? unlessArrived(work)
}

const startProblems: { readonly [code: string]: string } = {
  E2BIG: 'The command is too long for this machine. Put long text into a file.',
  EACCES: 'The command is not executable, or its working directory cannot be entered.',
  EAGAIN: 'The machine cannot start another process now.',
  EMFILE: 'Too many files are open in this process to start another.',
  ENFILE: 'Too many files are open on this machine to start a process.',
  ENOENT: 'The command, the interpreter it names or the working directory does not exist.',
  ENOMEM: 'There is not enough memory to start a process.',
}

function startProblem(thrown: unknown): string {
  const { code } = (thrown ?? {}) as { code?: unknown }
  return (typeof code === 'string' ? startProblems[code] : undefined) ?? messageOf(thrown)
}
