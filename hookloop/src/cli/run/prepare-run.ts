import type { Agent } from '../../agent/agent.ts'
import type { JsonObject } from '../../state/json.ts'
import type { SessionSnapshot } from '../../sessions/log/read-session.ts'
import { agentFor, type AgentFlags } from '../agents/create-cli-agent.ts'
import { Displayed } from '../terminal/displayed.ts'
import { colorsFor } from '../terminal/colors.ts'
import { hooksHere, type HooksFlags, type ToldOfHooks } from './file-hooks.ts'
import type { Way } from './next-steps.ts'
import { Person } from './terminal-approver.ts'
import { hasPerson, type Place } from '../cli-context.ts'
import { printable } from '../terminal/printable.ts'
import { flagsFor, STARTED_WITH, startedWith } from './session-options.ts'
import type { OpenStore, StoreFlags } from '../sessions/open-store.ts'
import type { ShowFlags } from './watch-run.ts'

/** Everything the command line may say about a run. */
export type CommandFlags = AgentFlags & StoreFlags & HooksFlags & Partial<ShowFlags>

/** The session that runs are kept in. */
export type Keeping = OpenStore & {
  readonly session: string
  /** What is in it already. */
  readonly kept?: SessionSnapshot | undefined
  /** It is gone with this process, so nobody can answer later. */
  readonly isPassing?: boolean
}

export type Prepared = {
  readonly agent: Agent<unknown>
  /** Who answers its questions here, if somebody does. */
  readonly person: Person | undefined
  /** What goes along with what is said, when it is kept. */
  readonly metadata: JsonObject
  /** How to get to the session again. */
  readonly way: Way | undefined
  /** What is shown of a text. */
  readonly shownAs: (text: string) => string
}

/** The same, for a session. */
export type PreparedToKeep = Prepared & { readonly way: Way }

type Around = {
  readonly place: Place
  readonly keeping: Keeping | undefined
} & Pick<ToldOfHooks, 'onWake'>

/** The agent of a command, with somebody to ask, and what its session has to know about it. */
export async function prepare(
  given: CommandFlags,
  around: Around & { readonly keeping: Keeping },
): Promise<PreparedToKeep>
export async function prepare(given: CommandFlags, around: Around): Promise<Prepared>
export async function prepare(given: CommandFlags, { place, keeping, onWake }: Around): Promise<Prepared> {
  const { env, command } = place
  const displayed = new Displayed()
  const { shownAs } = displayed
  const flags = keeping === undefined ? given : withKnown(given, { place, keeping })
  const waits = keeping !== undefined && keeping.isPassing !== true
  const somebody = flags.json !== true && hasPerson(place) ? new Person(place.stdin, waits) : undefined
  const { agent, isAskedHere } = await agentFor(flags, {
    env,
    command,
    store: keeping?.store,
    asks: somebody?.approval,
    waits,
    hooks: await hooksHere(flags, place, { onDisplay: displayed.add, ...(onWake !== undefined && { onWake }) }),
  })
  const person = isAskedHere ? somebody : undefined
  if (keeping === undefined) return { agent, person, metadata: {}, way: undefined, shownAs }
  const { session, flags: storeFlags } = keeping
  const metadata = keeping.isPassing === true ? {} : { [STARTED_WITH]: startedWith(flags, env) }
  return { agent, person, metadata, way: { session, command, flags: storeFlags }, shownAs }
}

/** Something to know that is not part of the run. */
export function note(words: string, { quiet, json }: Partial<ShowFlags>, { err, env }: Place): void {
  if (quiet !== true && json !== true) err.write(`${colorsFor(err, env).dim(printable(words))}\n`)
}

/** What the command line says, and what the session was started with. */
export function withKnown<F extends CommandFlags>(
  flags: F,
  { place, keeping }: { readonly place: Place; readonly keeping: Keeping },
): F {
  return flagsFor(flags, keeping.kept?.state?.metadata[STARTED_WITH], {
    env: place.env,
    session: keeping.session,
    note: (words) => note(words, flags, place),
  })
}
