import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../errors.ts'
import { CappedOutput, type CappedText, type OutputCap } from './capped-output.ts'
import { executableProblem } from './executable-problem.ts'
import { openPipes, type Pipes } from './pipes.ts'
import { withTagLimit, newTag, TAG_VARIABLE, type Command } from './process-tag.ts'
import { ProcessTree } from './process-tree.ts'
import { killOnExit, listenForExit } from './kill-on-exit.ts'
import { abortable, Deadline, waitAtMost } from '../timeout.ts'

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
  /** How many processes it left running in the background. They were ended. */
  readonly leftBehind: number
  /** Why it did not start, or which processes could not be ended. */
  readonly problem?: string
}

/** Between SIGTERM and SIGKILL. */
const KILL_AFTER_MS = 200
/** How long background processes, such as the last reader of a pipe, may take to end by themselves. */
const LINGER_MS = 200
/** How long to wait for buffered output once all processes have ended. */
const DRAIN_MS = 500

/**
 * Runs a program to its end and never throws. The program has no terminal, its own process session and only the given
 * environment. All processes that it starts end with it: on timeout, on cancel, when this process ends, and when it exits.
 */
export async function runProcess(command: Command, options: ProcessOptions): Promise<ProcessResult> {
  const running = new Running(options)
  // For a shell this check is made only if it does not start: it is slow, and shells exist.
  const problem =
    problemWithText(command, options.env) ?? ('line' in command ? undefined : findProblem(command, options))
  if (options.signal?.aborted === true) return running.result(neverStarted)
  if (problem !== undefined) return running.result({ ended: 'notStarted', problem })
  return running.start(command)
}

type Ending = Partial<ProcessResult> & { readonly ended: ProcessResult['ended'] }
const neverStarted: Ending = { ended: 'cancelled', problem: 'It was not started.' }
type Streams = { readonly [name in 'stdin' | 'stdout' | 'stderr']: ChildProcess[name] | undefined }
type Exit = { readonly exitCode: number | null; readonly signal: string | null }

/** One running process. */
class Running {
  readonly #options: ProcessOptions
  readonly #stored: { readonly stdout: CappedOutput; readonly stderr: CappedOutput }
  readonly #decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }

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
      leftBehind: 0,
      ...ending,
    }
  }

  async start(command: Command): Promise<ProcessResult> {
    const { cwd, env, signal, input: given } = this.#options
    const input = typeof given === 'string' ? Buffer.from(given) : given
    const tag = newTag()
    const pipes = await openPipes(input, (stream, bytes) => this.#take(stream, bytes))
    const stdio: StdioOptions = pipes ? [...pipes.given] : [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe']
    try {
      if (signal?.aborted === true) {
        pipes?.closeGiven()
        return this.result(neverStarted) // cancelled while the pipes were made
      }
      listenForExit()
      const child = startChild(
        withTagLimit(command, tag),
        { cwd, env: { ...env, [TAG_VARIABLE]: tag.variable }, stdio },
        pipes,
      )
      const exited = exitOf(child)
      if (child.pid === undefined) return this.#notStarted(command, await exited)
      if (!pipes) feed(child, input)
      const tree = new ProcessTree(tag, child.pid)
      return await this.#follow(pipes ?? child, { exited, tree }).finally(killOnExit(tree))
    } catch (thrown) {
      return this.#notStarted(command, thrown)
    } finally {
      for (const stream of [pipes?.stdin, pipes?.stdout, pipes?.stderr]) stream?.destroy()
    }
  }

  #notStarted(command: Command, thrown: unknown): ProcessResult {
    return this.result({ ended: 'notStarted', problem: findProblem(command, this.#options) ?? startProblem(thrown) })
  }

  async #follow(
    streams: Streams,
    { exited, tree }: { exited: Promise<Exit | Error>; tree: ProcessTree },
  ): Promise<ProcessResult> {
    const drained = Promise.all([this.#read(streams.stdout, 'stdout'), this.#read(streams.stderr, 'stderr')])
    const deadline = new Deadline(this.#options.signal)
    const { timeoutMs } = this.#options
    if (timeoutMs !== undefined) deadline.start(timeoutMs, () => new Error('timed out'))
    try {
      const ended = await waitForEnd(exited, deadline)
      const { leftBehind, survivors } =
        ended === 'exited'
          ? await endBackground(tree, drained)
          : { leftBehind: 0, survivors: await tree.end(KILL_AFTER_MS) }
      await within(drained, DRAIN_MS)
      const exit = await within(exited, DRAIN_MS)
      return this.result({
        ended,
        leftBehind,
        ...(exit !== undefined && !(exit instanceof Error) && exit),
        ...(survivors > 0 && {
          problem: `${survivors} of its processes could not be ended, and may still be running.`,
        }),
      })
    } finally {
      deadline.clear()
      for (const stream of [streams.stdin, streams.stdout, streams.stderr]) stream?.destroy()
    }
  }

  /** Always reads, so that a process never waits for a slow listener. */
  #read(from: Readable | null | undefined, stream: ProcessOutput['stream']): Promise<void> {
    return new Promise((resolve) => {
      if (!from) return resolve()
      from.on('data', (bytes: Buffer) => this.#take(stream, bytes))
      from.on('error', () => undefined) // its end is all that matters
      from.on('close', () => {
        this.#report(stream, this.#decoders[stream].end())
        resolve()
      })
    })
  }

  #take(stream: ProcessOutput['stream'], bytes: Buffer): void {
    this.#stored[stream].push(bytes)
    if (this.#options.onOutput !== undefined) this.#report(stream, this.#decoders[stream].write(bytes))
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

/** Our copies of the child's ends are always closed, or its output would never end. */
function startChild(
  [command, ...args]: readonly [string, ...string[]],
  how: { readonly cwd: string; readonly env: NodeJS.ProcessEnv; readonly stdio: StdioOptions },
  pipes: Pipes | undefined,
): ChildProcess {
  try {
    return spawn(command, args, { ...how, detached: true }) // its own session: no terminal, and a group to signal
  } finally {
    pipes?.closeGiven()
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

/** The child may close its input without reading it. */
function feed({ stdin }: ChildProcess, input: Uint8Array | undefined): void {
  if (stdin === null || input === undefined) return
  stdin.on('error', () => undefined)
  stdin.end(input)
}

/** After the process has exited, its background processes get a moment to end by themselves, and are then ended. */
async function endBackground(
  tree: ProcessTree,
  drained: Promise<unknown>,
): Promise<{ readonly leftBehind: number; readonly survivors: number }> {
  const deadline = performance.now() + LINGER_MS
  await within(drained, 20)
  let left = tree.members().length
  const hadSome = left > 0
  while (left > 0 && performance.now() < deadline) {
    await sleep(20)
    left = tree.members().length
  }
  if (left === 0) left = await tree.countNewest(hadSome)
  return { leftBehind: left, survivors: left > 0 ? await tree.end(KILL_AFTER_MS) : 0 }
}

/** After this process was busy, its timers fire before it has read what arrived in the meantime: that is read first. */
async function unlessArrived<T>(work: Promise<T>): Promise<T | undefined> {
  return Promise.race([work, nextTurn().then(() => nextTurn(undefined))])
}

async function within<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
  return (await waitAtMost(work, ms)) ?? unlessArrived(work)
}

function programOf(command: Command): readonly [program: string, ...words: string[]] {
  return 'line' in command ? [command.shell, command.line] : command
}

function findProblem(command: Command, { cwd, env }: ProcessOptions): string | undefined {
  return executableProblem(programOf(command)[0], { cwd, path: env['PATH'] })
}

function problemWithText(command: Command, env: Readonly<Record<string, string>>): string | undefined {
  const argv = programOf(command)
  if (argv.some((word) => word.includes('\0'))) return 'A word of the command contains a NUL character.'
  const bad = Object.entries(env).find(
    ([name, value]) =>
      name === '' || name.includes('=') || typeof value !== 'string' || `${name}${value}`.includes('\0'),
  )
  return bad && `The environment variable ${JSON.stringify(bad[0])} has an invalid name or value.`
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
