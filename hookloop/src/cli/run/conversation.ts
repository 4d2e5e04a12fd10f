import { explain } from '../../agent/explain/explain.ts'
import type { Run } from '../../agent/run.ts'
import type { Session } from '../../agent/session.ts'
import type { Agent } from '../../agent/agent.ts'
import type { SlashCommand } from '../../agent/capability.ts'
import { partsOf } from '../../agent/agent-parts.ts'
import { slashCommandsOf } from '../../agent/slash-commands.ts'
import type { JsonObject } from '../../state/json.ts'
import { MODEL_KEY } from '../../state/agent-state.ts'
import type { Way } from './next-steps.ts'
import type { Person } from './terminal-approver.ts'
import type { Place } from '../cli-context.ts'
import type { PreparedToKeep } from './prepare-run.ts'
import { watch, type ShowFlags, type WatchedRun } from './watch-run.ts'

/** A conversation that is being led: the session it is in, which a fork changes, and what was said last. */
export class Conversation {
  readonly #agent: Agent<unknown>
  readonly #person: Person | undefined
  readonly #metadata: JsonObject
  readonly #flags: ShowFlags
  readonly #place: Place
  readonly #shownAs: (text: string) => string
  #way: Way
  #session: Session<unknown>
  #last: Run<unknown> | undefined

  constructor(
    { agent, person, metadata, way, shownAs }: PreparedToKeep,
    { flags, place }: { readonly flags: ShowFlags; readonly place: Place },
  ) {
    this.#agent = agent
    this.#person = person
    this.#metadata = metadata
    this.#way = way
    this.#shownAs = shownAs
    this.#flags = flags
    this.#place = place
    this.#session = agent.session(way.session)
  }

  get way(): Way {
    return this.#way
  }

  /** What can be said as `/name arguments`, beside what `chat` does itself. */
  get slashCommands(): readonly SlashCommand[] {
    return slashCommandsOf(partsOf(this.#agent))
  }

  get session(): Session<unknown> {
    return this.#session
  }

  /** A run of another process has ended here: it is what was said last, and hooks know that somebody is there. */
  goneOnWith(run: Run<unknown>): void {
    this.#last = run
  }

  /** Whether anything was said. */
  get hasBegun(): boolean {
    return this.#last !== undefined
  }

  /** Says something, and shows what comes of it. */
  async say(text: string): Promise<WatchedRun> {
    const session = this.#session
    const options = { metadata: this.#metadata }
    const watched = await watch(
      {
        start: (how) => session.stream(text, { ...options, ...how }),
        person: this.#person,
        way: this.#way,
        shownAs: this.#shownAs,
        saysWhere: false,
      },
      this.#flags,
      this.#place,
    )
    this.#last = watched.ended
    return watched
  }

  /** Has it hear what hooks in the background have said, which stands above whatever is said next. */
  wake(): Promise<WatchedRun> {
    return this.say(
      'What a hook in the background has said stands above. Nobody has typed this: look into it, and act on it.',
    )
  }

  clear(): Promise<void> {
    return this.#session.clear()
  }

  /** Has it summed up with the next message. Gives false when the agent has nothing that does so. */
  async compact(): Promise<boolean> {
    if (!this.#agent.describe().hooks.some(({ name }) => name === 'summarization.compact')) return false
    await this.#session.compact()
    return true
  }

  /** The model that is in use. */
  async model(): Promise<string> {
    const chosen = (await this.#session.state())?.metadata[MODEL_KEY]
    return typeof chosen === 'string' ? chosen : this.#agent.describe().model
  }

  changeModel(name: string): Promise<void> {
    return this.#session.changeModel(name)
  }

  /** Goes on in a copy; gives its id. The session stays as it is. */
  async fork(): Promise<string> {
    this.#session = await this.#session.fork()
    this.#way = { ...this.#way, session: this.#session.id }
    return this.#session.id
  }

  explain(): string {
    return this.#last === undefined ? 'Nothing was said yet.' : explain(this.#last)
  }

  /** Tells the hooks that it is over. A run that waits is not. */
  async end(): Promise<void> {
    if (this.#last !== undefined && this.#last.status !== 'suspended') await this.#session.end('exit')
  }
}
