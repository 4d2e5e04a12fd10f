import { AgentError } from '../../errors.ts'
import type { SlashCommand } from '../../core/agent/capability.ts'
import { explanationText } from '../../core/explain/explain.ts'
import type { Run } from '../../core/agent/run.ts'
import type { Session } from '../../core/agent/session.ts'
import { slashCommandsOf } from '../../core/agent/slash-commands.ts'
import { partsOf } from '../../core/agent/agent-parts.ts'
import type { RunLog } from '../../core/effects/log.ts'
import { MODEL_KEY } from '../../core/state/agent-state.ts'
import type { Message } from '../../core/state/message.ts'
import type { Answer, Answers, Approval } from '../../core/state/tool-call.ts'
import type { CliContext } from '../cli-context.ts'
import { interruptionExitCode, type ExitCode } from '../exit-codes.ts'
import { count } from '../terminal/amounts.ts'
import { interruptible } from '../terminal/interruption.ts'
import { jsonText } from '../terminal/json.ts'
import { note } from '../terminal/note.ts'
import { Screen } from '../terminal/screen.ts'
import { askApproval } from './ask-approval.ts'
import { explainRun } from './explain-run.ts'
import { answerLines, type SessionRef } from './next-steps.ts'
import type { PreparedRun } from './prepare-run.ts'
import { watchRun, type ShowFlags, type WatchedRun, type WatchOptions } from './watch-run.ts'
import { warningLine } from '../terminal/hook-lines.ts'
import { exact, oneLine } from '../terminal/printable.ts'

const MAX_WARNING_CHARS = 600

export type ConversationFlags = ShowFlags & {
  readonly acceptMissing?: readonly string[]
  readonly onNewInput?: 'reject' | 'block'
}

/** Runs of an agent in one session, shown on the screen. A fork changes the session. */
export class Conversation {
  readonly #prepared: PreparedRun
  readonly #flags: ConversationFlags
  readonly #cli: CliContext
  #ref: SessionRef
  #session: Session<unknown>
  #last: Run<unknown> | undefined

  constructor(prepared: PreparedRun, { flags, cli }: { readonly flags: ConversationFlags; readonly cli: CliContext }) {
    this.#prepared = prepared
    this.#flags = flags
    this.#cli = cli
    this.#ref = prepared.ref
    this.#session = prepared.session
  }

  get ref(): SessionRef {
    return this.#ref
  }

  /** The slash commands of the agent, beside those of `chat`. */
  get slashCommands(): readonly SlashCommand[] {
    return slashCommandsOf(partsOf(this.#prepared.agent))
  }

  get hasRun(): boolean {
    return this.#last !== undefined
  }

  /** Sends a message and shows the run. */
  send(input: string | Message, { showsRef = false }: Pick<WatchOptions, 'showsRef'> = {}): Promise<WatchedRun> {
    const { metadata } = this.#prepared
    const { onNewInput = 'reject' } = this.#flags
    return this.#watch({ start: (live) => this.#session.stream(input, { metadata, onNewInput, ...live }), showsRef })
  }

  /** Whether it takes no message before a run is resumed. With `--on-new-input block`, the next message blocks what is asked. */
  isBlockedBy({ status }: Run<unknown>): boolean {
    return status === 'suspended' && this.#flags.onNewInput !== 'block'
  }

  /** Resumes an open run, after asking for the answers it waits for. Undefined if it still waits for all of them. */
  async resume(open: RunLog): Promise<WatchedRun | undefined> {
    const answers = await this.#answersFor(open)
    if (answers === undefined) return undefined
    const { acceptMissing } = this.#flags
    const options = { answers, ...(acceptMissing !== undefined && { acceptMissing }) }
    return this.#watch({ start: (live) => this.#session.resumeStream({ ...options, ...live }), showsRef: true })
  }

  /** Answers of the user at the terminal. Undefined if the run waits for answers and has none at all. */
  async #answersFor(open: RunLog): Promise<Answers | undefined> {
    if (open.pending === undefined) return {}
    const [flags, cli] = [this.#flags, this.#cli]
    const asked = open.questions()
    const answers = this.#prepared.approver === undefined ? {} : await askAll(asked, cli)
    if (asked.length < open.pending.length || asked.length === 0 || Object.keys(answers).length > 0) return answers
    const { session } = this.#ref
    note(`${exact(session)} waits for ${count(asked.length, 'approval')}.`, flags, cli)
    for (const line of answerLines(asked, this.#ref)) note(line, flags, cli)
    const result = { type: 'result', status: 'suspended', session, pending: asked }
    if (flags.json === true) cli.out.write(`${jsonText(result)}\n`)
    return undefined
  }

  async #watch(options: Pick<WatchOptions, 'start' | 'showsRef'>): Promise<WatchedRun> {
    const { approver, isSaved, reported } = this.#prepared
    const ref = isSaved ? this.#ref : undefined
    const watched = await watchRun({ ...options, ref, approver, reported }, this.#flags, this.#cli)
    this.#last = watched.run
    return watched
  }

  clear(): Promise<void> {
    return this.#session.clear()
  }

  /** Summarizes with the next message. Returns false if the agent has no `summarization()`. */
  async compact(): Promise<boolean> {
    if (!this.#prepared.agent.describe().hooks.some(({ name }) => name === 'summarization.compact')) return false
    await this.#session.compact()
    return true
  }

  async model(): Promise<string> {
    const chosen = (await this.#session.state())?.metadata[MODEL_KEY]
    return typeof chosen === 'string' ? chosen : this.#prepared.agent.describe().model
  }

  changeModel(name: string): Promise<void> {
    return this.#session.changeModel(name)
  }

  /** Continues in a copy and returns its id. */
  async fork(): Promise<string> {
    this.#session = await this.#session.fork()
    this.#ref = { ...this.#ref, session: this.#session.id }
    return this.#session.id
  }

  explain(verbose = this.#flags.verbose === true): string {
    if (this.#last === undefined) return 'Nothing has run yet.'
    return explanationText(explainRun(this.#last, this.#prepared.isSaved ? this.#ref : undefined), { verbose })
  }

  /**
   * Ends the session for its hooks, unless nothing ran, the run is suspended, or another process uses the session now. Returns
   * the exit code if that was interrupted.
   */
  async end(reason?: string): Promise<ExitCode | undefined> {
    if (this.#last === undefined || this.#last.status === 'suspended') return undefined
    const { signal, by, dispose } = interruptible(this.#cli.out, () => undefined)
    try {
      for (const warning of await this.#session.end(reason, { signal })) this.#warn(warningLine(warning))
    } catch (thrown) {
      if (!(thrown instanceof AgentError && (thrown.code === 'SESSION_BUSY' || signal.aborted))) throw thrown
      if (signal.aborted) this.#warn('The hooks at the end of the session were interrupted, and may not have finished.')
    } finally {
      dispose()
    }
    return signal.aborted ? interruptionExitCode(by()) : undefined
  }

  /** The result of the run is on the screen already, so this is printed to stderr, also with `--json`. */
  #warn(message: string): void {
    if (this.#flags.quiet === true) return
    const screen = new Screen(this.#cli)
    screen.line(`${screen.colors.yellow('!')} ${oneLine(message, MAX_WARNING_CHARS)}`)
  }
}

async function askAll(unanswered: readonly Approval[], cli: CliContext): Promise<Answers> {
  const screen = new Screen(cli)
  const { signal, dispose } = interruptible(cli.out, () => undefined)
  const answers: { [id: string]: Answer } = {}
  try {
    for (const approval of unanswered) {
      const answer = await askApproval(approval, { screen, stdin: cli.stdin, signal, canSuspend: true })
      if (signal.aborted) return {} // Ctrl-C at a question does not answer it
      if (answer !== 'suspend') answers[approval.id] = answer
    }
    return answers
  } finally {
    dispose()
  }
}
