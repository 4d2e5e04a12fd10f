import type { Agent, Capability, Hook } from '../plugin.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import type { StoredRun } from '../sessions/index.ts'
import type { StudioInfo } from './api.types.ts'
import type { RunReader } from './runs.ts'
import type { ServerOptions } from './server.ts'
import type { ListPoller } from './sessions.ts'

/** What a studio shows, and what it may run. */
export type StudioOptions = ServerOptions & {
  readonly store: SessionStore
  readonly info: StudioInfo
  /** The agent that the user has named. */
  readonly agent?: Agent<unknown> | undefined
  /** The same to resume sessions and to run forks. Without it, the studio runs nothing. */
  readonly liveAgent?: () => Promise<Agent<unknown>>
  /** Whether the agent of a run is known and trusted, so that the run can be judged again; otherwise why not. */
  readonly canJudge: (run: StoredRun) => true | string
  /** The agent of a run that can be judged again. */
  readonly agentOf: (run: StoredRun) => Promise<Agent<unknown>>
  readonly loadHooks: (files: readonly string[]) => Promise<readonly (Hook | Capability)[]>
  /** Texts and patterns to redact in exports, in addition to the built-in rules. */
  readonly redact: readonly (RegExp | string)[]
  /** A run that was started here could not be run. */
  readonly onError: (error: unknown) => void
}

/** What calls and streams work on. */
export type Context = {
  readonly options: StudioOptions
  readonly store: SessionStore
  readonly reader: RunReader
  readonly poller: ListPoller
  /** Aborts when the studio closes. */
  readonly signal: AbortSignal
  /** Lets a run continue after its call was answered. */
  readonly inBackground: (run: Promise<unknown>) => void
}
