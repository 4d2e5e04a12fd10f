import { RunContext } from '../../agent/loop/run-context.ts'
import type { AgentParts } from '../../agent/agent-parts.ts'
import type { AgentState } from '../../state/agent-state.ts'
import type { Json } from '../../state/json.ts'
import type { Checkpoint } from '../../effects/effects.ts'
import { toAgentError, type AgentError } from '../../errors.ts'
import type { Draft, FactValues } from '../../hooks/base-context.ts'
import type { Invocation } from '../../hooks/invocation.ts'
import { hook, observe, shadow, type Hook } from '../../hooks/hook.ts'
import { Moment } from '../../hooks/hook-host.ts'
import { HookFailure } from '../../hooks/run-hooks.ts'
import { HookStack, type Plan, type StackedHook } from '../../hooks/stack.ts'
import { isAround, triggerNames, type HookTrigger, type PlainTrigger } from '../../hooks/triggers.ts'

/** What a set of hooks made of one event. */
export type Judged = Pick<Invocation, 'votes' | 'asks' | 'blocked' | 'allowed' | 'recovery' | 'failure'> & {
  readonly facts: FactValues
  readonly state: AgentState
  /** At `beforeToolUse`: the arguments before they are parsed, and why they cannot be. */
  readonly args?: Json
  readonly problem?: string
}

/** How a hook that failed was dealt with. */
export type Recovered = {
  readonly message: string
  readonly next: 'retry' | 'ignore' | 'end'
  /** The state after `onError` had its say. */
  readonly state: AgentState
}

/** One event of a run that is replayed: what hooks were given, what they made of it, and what became of the state. */
export type RecordedEvent = {
  readonly trigger: HookTrigger
  readonly step: number
  readonly callIndex: number | undefined
  readonly start: Draft
  /** Whether hooks that change took part. They do not when something is judged again. */
  readonly changes: boolean
  readonly moment: Moment
  readonly wasCancelled: boolean
  readonly recoveries: readonly Recovered[]
  readonly judged: Judged
  readonly after: AgentState
}

type Begun = {
  readonly moment: Moment
  readonly wasCancelled: boolean
  readonly changes: boolean
  readonly recoveries: Recovered[]
  /** The facts as hooks that change left them. */
  changed: FactValues | undefined
}

type ChildOptions = ConstructorParameters<typeof RunContext> extends [AgentParts, ...infer Rest] ? Rest : never

/** The run of an agent inside one that is replayed. */
class InnerRun extends RunContext {
  override child(parts: AgentParts, ...how: ChildOptions): RunContext {
    return new InnerRun(watchedParts(parts), ...how)
  }
}

/** A run that is replayed, and keeps every event of it. */
export class WatchedRun extends RunContext {
  readonly events: RecordedEvent[] = []
  /** For how long nobody worked on what comes next, because a process had died. */
  downMs: () => number = () => 0
  /** When somebody went on with it then. */
  resumedAt: () => number = () => 0
  readonly #begun = new WeakMap<Invocation, Begun>()
  /** A firing that is about to be made elsewhere. */
  #coming: Begun | undefined
  /** The firing whose hooks are being run. */
  #changing: Begun | undefined

  override checkpoint(phase: Checkpoint['phase']): void {
    super.checkpoint(phase)
    const downMs = phase === 'started' || phase === 'step' ? this.downMs() : 0
    if (downMs === 0) return
    this.takenOverAt = this.resumedAt()
    this.updateExecution({ waitedMs: this.execution.waitedMs + downMs })
  }

  /** What agents inside did is replayed as well, but not judged: other hooks are asked about the run itself. */
  override child(parts: AgentParts, ...how: ChildOptions): RunContext {
    return new InnerRun(watchedParts(parts), ...how)
  }

  override shade(firing: Invocation): undefined {
    this.#begin(firing, true)
    this.#note(firing, judgedOf(firing))
  }

  override transform(firing: Invocation, plan: Plan): void | Promise<void> {
    const begun = this.#begin(firing, true)
    this.#changing = begun
    const end = (): void => {
      begun.changed = firing.facts
      this.#changing = undefined
    }
    const waiting = super.transform(firing, plan)
    return waiting === undefined ? end() : waiting.then(end)
  }

  override async transformOrThrow(firing: Invocation, plan: Plan): Promise<void> {
    this.#begin(firing, true)
    try {
      await super.transformOrThrow(firing, plan)
    } catch (thrown) {
      const failure = thrown instanceof HookFailure ? thrown.error : toAgentError(thrown, 'HOOK_FAILED')
      this.#note(firing, { ...judgedOf(firing), failure })
      throw thrown
    }
  }

  override fireQuietly(trigger: HookTrigger, facts: FactValues): Promise<Invocation> {
    this.#coming = this.#beginning(true)
    return super.fireQuietly(trigger, facts)
  }

  override judge(firing: Invocation, plan: Plan): Invocation | Promise<Invocation> {
    if (!this.#begun.has(firing)) this.#begin(firing, false)
    return super.judge(firing, plan)
  }

  override conclude(firing: Invocation, plan: Plan): Invocation {
    const judged = judgedOf(firing) // observers are shown something else
    const concluded = super.conclude(firing, plan)
    this.#note(firing, judged)
    return concluded
  }

  override async recover(error: AgentError, during: HookTrigger): Promise<'retry' | 'ignore' | 'end'> {
    const changing = this.#changing
    this.#coming = this.#beginning(true)
    const next = await super.recover(error, during)
    this.#coming = undefined
    changing?.recoveries.push({ message: error.message, next, state: this.state })
    return next
  }

  #begin(firing: Invocation, changes: boolean): Begun {
    const begun = this.#coming ?? this.#beginning(changes)
    this.#coming = undefined
    this.#begun.set(firing, begun)
    return begun
  }

  #beginning(changes: boolean): Begun {
    const wasCancelled = this.signal.aborted
    return { moment: new Moment(this), wasCancelled, changes, recoveries: [], changed: undefined }
  }

  #note(firing: Invocation, judged: Judged): void {
    if (this.failure?.code.startsWith('REPLAY_') === true) return // that did not happen in the recorded run
    const begun = this.#begun.get(firing) ?? this.#begin(firing, true)
    const { trigger, callIndex, start } = firing
    const { moment, wasCancelled, changes, recoveries } = begun
    const call = (begun.changed ?? start.facts)['toolCall'] as { readonly args: Json } | undefined
    this.events.push({
      trigger,
      step: moment.step,
      callIndex,
      start,
      changes,
      moment,
      wasCancelled,
      recoveries,
      judged: call === undefined ? judged : { ...judged, args: call.args },
      after: this.state,
    })
  }
}

export function judgedOf(firing: Invocation): Judged {
  const { votes, asks, blocked, allowed, recovery, failure, facts, state } = firing
  return { votes, asks, blocked, allowed, recovery, failure, facts, state }
}

const plainTriggers = triggerNames.filter((name): name is PlainTrigger => !isAround(name))

/**
 * The agent as it is replayed: its observers see nothing, its own shadows are left out, and every trigger fires, also
 * where it has no hook.
 */
export function watchedParts(parts: AgentParts): AgentParts {
  const witness = shadow(
    hook(plainTriggers, (ctx) => ctx, { name: 'hookloop.replay', priority: Number.MAX_SAFE_INTEGER }),
  )
  const inForce = parts.stack.hooks.filter((each) => !each.shadow).map(withoutEyes)
  return { ...parts, stack: new HookStack([...inForce, witness], parts.toolNames) }
}

/** An observer is in the ledger, which hooks may read; so one that sees nothing takes its place. */
function withoutEyes(stacked: StackedHook): Hook {
  if (stacked.mode !== 'observe') return stacked
  const { name, priority, triggers, tool, when } = stacked
  return { ...observe(triggers as readonly PlainTrigger[], () => undefined, { name, priority }), tool, when }
}
