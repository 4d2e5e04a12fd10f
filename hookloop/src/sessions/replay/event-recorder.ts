import type { AgentParts } from '../../agent/agent-parts.ts'
import type { RunContext, RunWitness } from '../../agent/loop/run-context.ts'
import type { AgentState } from '../../state/agent-state.ts'
import type { Json } from '../../state/json.ts'
import type { Draft, FactValues } from '../../hooks/base-context.ts'
import { observe, type Hook } from '../../hooks/hook.ts'
import { snapshotHost, type HookHost } from '../../hooks/hook-host.ts'
import type { Invocation } from '../../hooks/invocation.ts'
import { HookStack, type StackedHook } from '../../hooks/stack.ts'
import type { HookTrigger, PlainTrigger } from '../../hooks/triggers.ts'

/** What a set of hooks decided at one event. */
export type Judged = Pick<Invocation, 'votes' | 'asks' | 'blocked' | 'allowed' | 'recovery' | 'failure'> & {
  readonly facts: FactValues
  readonly state: AgentState
  /** At `beforeToolUse`: the arguments before parsing, and why they cannot be parsed. */
  readonly args?: Json
  readonly problem?: string
}

/** How the failure of a hook was handled. */
export type Recovered = {
  readonly message: string
  readonly next: 'retry' | 'ignore' | 'end'
  /** The state after `onError`. */
  readonly state: AgentState
}

/** One event of a replayed run: what hooks got, what they decided, and the state afterwards. */
export type RecordedEvent = {
  readonly trigger: HookTrigger
  readonly step: number
  readonly callIndex: number | undefined
  readonly start: Draft
  /** Whether transforms ran. They do not when guards judge a call again. */
  readonly changes: boolean
  /** The run as hooks saw it then. */
  readonly host: HookHost
  readonly wasCancelled: boolean
  readonly recoveries: readonly Recovered[]
  readonly judged: Judged
  readonly after: AgentState
}

type Started = {
  readonly host: HookHost
  readonly wasCancelled: boolean
  readonly changes: boolean
  readonly recoveries: Recovered[]
  /** The facts after the transforms. */
  changed: FactValues | undefined
}

/** Records every event of a run that is replayed. */
export class EventRecorder {
  readonly events: RecordedEvent[] = []
  /** How long no process worked on what comes next, because one had died. */
  downMs: () => number = () => 0
  /** When another process resumed it then. */
  resumedAt: () => number = () => 0
  readonly #started = new WeakMap<Invocation, Started>()

  /** Subagents are replayed as well, but their events are not recorded: other hooks are asked about the run itself. */
  readonly witness: RunWitness = {
    childParts: watchedParts,
    checkpointed: (run, phase) => {
      const downMs = phase === 'started' || phase === 'step' ? this.downMs() : 0
      if (downMs === 0) return
      run.resumedAt = this.resumedAt()
      run.updateExecution({ waitedMs: run.execution.waitedMs + downMs })
    },
    started: (run, invocation, changes) => {
      const wasCancelled = run.signal.aborted
      const started = { host: snapshotHost(run), wasCancelled, changes, recoveries: [], changed: undefined }
      this.#started.set(invocation, started)
    },
    changed: (invocation) => {
      this.#started.get(invocation)!.changed = invocation.facts
    },
    recovered: (run, invocation, { message }, next) => {
      this.#started.get(invocation)!.recoveries.push({ message, next, state: run.state })
    },
    decided: (run, invocation, failure) => {
      const judged = { ...judgedOf(invocation), ...(failure && { failure }) } // observers are shown something else
      return () => this.#record(run, invocation, judged)
    },
  }

  #record(run: RunContext, invocation: Invocation, judged: Judged): void {
    if (run.failure?.code.startsWith('REPLAY_') === true) return // that did not happen in the recorded run
    const { changed, ...started } = this.#started.get(invocation)!
    const { trigger, callIndex, start } = invocation
    const call = (changed ?? start.facts)['toolCall'] as { readonly args: Json } | undefined
    this.events.push({
      trigger,
      step: started.host.step,
      callIndex,
      start,
      ...started,
      judged: call === undefined ? judged : { ...judged, args: call.args },
      after: run.state,
    })
  }
}

export function judgedOf(firing: Invocation): Judged {
  const { votes, asks, blocked, allowed, recovery, failure, facts, state } = firing
  return { votes, asks, blocked, allowed, recovery, failure, facts, state }
}

/** The agent as it is replayed: its observers do nothing, and its shadow hooks are removed. */
export function watchedParts(parts: AgentParts): AgentParts {
  const inForce = parts.stack.hooks.filter((each) => !each.shadow).map(withoutObserver)
  return { ...parts, stack: new HookStack(inForce, parts.toolNames) }
}

/** An observer is in the ledger, which hooks may read; so one that sees nothing takes its place. */
function withoutObserver(stacked: StackedHook): Hook {
  if (stacked.mode !== 'observe') return stacked
  const { name, priority, triggers, tool, when } = stacked
  return { ...observe(triggers as readonly PlainTrigger[], () => undefined, { name, priority }), tool, when }
}
