import type { Agent } from '../../agent/agent.ts'
import type { SlashCommand } from '../../agent/capability.ts'
import { explain } from '../../agent/explain/explain.ts'
import type { Run } from '../../agent/run.ts'
import type { Session } from '../../agent/session.ts'
import { slashCommandsOf } from '../../agent/slash-commands.ts'
import { partsOf } from '../../agent/agent-parts.ts'
import type { SessionSnapshot, OpenRun } from '../../sessions/log/read-session.ts'
import { MODEL_KEY } from '../../state/agent-state.ts'
import type { Message } from '../../state/message.ts'
import type { CliContext } from '../cli-context.ts'
import { collectAnswers } from './collect-answers.ts'
import type { SessionRef } from './next-steps.ts'
import type { PreparedRun } from './prepare-run.ts'
import { watchRun, type ShowFlags, type WatchedRun, type WatchOptions } from './watch-run.ts'

type ConversationFlags = ShowFlags & { readonly acceptMissing?: readonly string[] }

/** Runs of an agent in one session, shown on the screen. A fork changes the session. */
export class Conversation {
  readonly #prepared: PreparedRun
  readonly #agent: Agent<unknown>
  readonly #flags: ConversationFlags
  readonly #cli: CliContext
  #ref: SessionRef
  #session: Session<unknown>
  #last: Run<unknown> | undefined

  constructor(prepared: PreparedRun, { flags, cli }: { readonly flags: ConversationFlags; readonly cli: CliContext }) {
    this.#prepared = prepared
    this.#agent = prepared.agent
    this.#flags = flags
    this.#cli = cli
    this.#ref = prepared.ref
    this.#session = prepared.agent.session(prepared.ref.session)
  }

  get ref(): SessionRef {
    return this.#ref
  }

  /** The slash commands of the agent, beside those of `chat`. */
  get slashCommands(): readonly SlashCommand[] {
    return slashCommandsOf(partsOf(this.#agent))
  }

  /** Whether a run has ended in this process. */
  get hasRun(): boolean {
    return this.#last !== undefined
  }

  /** Sends a message and shows the run. */
  send(input: string | Message, { showsRef = false }: Pick<WatchOptions, 'showsRef'> = {}): Promise<WatchedRun> {
    const { metadata } = this.#prepared
    const session = this.#session
    return this.#watch({ start: (how) => session.stream(input, { metadata, ...how }), showsRef })
  }

  /** Has the model read what background hooks reported: that precedes the next message. */
  wake(): Promise<WatchedRun> {
    return this.send(
      'A background hook has reported what is above. The user did not type this message: look into the report and act on it.',
    )
  }

  /** Resumes an open run, after asking for the answers it waits for. Undefined if it still waits for all of them. */
  async resume(saved: SessionSnapshot, open: OpenRun): Promise<WatchedRun | undefined> {
    const [flags, cli, session] = [this.#flags, this.#cli, this.#session]
    const canAsk = this.#prepared.approver !== undefined
    const answers = await collectAnswers({ saved, open, ref: this.#ref, canAsk, flags, cli })
    if (answers === undefined) return undefined
    const { acceptMissing } = flags
    const options = { answers, ...(acceptMissing !== undefined && { acceptMissing }) }
    return this.#watch({ start: (how) => session.resumeStream({ ...options, ...how }), showsRef: true })
  }

  async #watch(options: Pick<WatchOptions, 'start' | 'showsRef'>): Promise<WatchedRun> {
    const { approver, displayText, isSaved } = this.#prepared
    const ref = isSaved ? this.#ref : undefined
    const watched = await watchRun({ ...options, ref, approver, displayText }, this.#flags, this.#cli)
    this.#last = watched.run
    return watched
  }

  clear(): Promise<void> {
    return this.#session.clear()
  }

  /** Summarizes with the next message. Returns false if the agent has no `summarization()`. */
  async compact(): Promise<boolean> {
    if (!this.#agent.describe().hooks.some(({ name }) => name === 'summarization.compact')) return false
    await this.#session.compact()
    return true
  }

  async model(): Promise<string> {
    const chosen = (await this.#session.state())?.metadata[MODEL_KEY]
    return typeof chosen === 'string' ? chosen : this.#agent.describe().model
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

  explain(): string {
    return this.#last === undefined ? 'Nothing has run yet.' : explain(this.#last)
  }

  /** Ends the session for its hooks, unless nothing ran or the run is suspended. */
  async end(reason?: string): Promise<void> {
    if (this.#last !== undefined && this.#last.status !== 'suspended') await this.#session.end(reason)
  }
}
