import type { ToModel } from '../state/inference.ts'
import type { LedgerEntry, TimedLedgerEntry } from '../state/ledger.ts'
import type { Above } from '../state/subagent.ts'
import type { TokenUsage, Usage } from '../state/usage.ts'
import type { Effects } from '../effects/effects.ts'
import type { RunEnd } from '../effects/run-time.ts'
import type { HookInference, InferringHook } from './infer.ts'
import type { HookTrigger } from './triggers.ts'

/** What hooks see of the run they are invoked in, and where they report what they did. */
export type HookHost = {
  readonly effects: Effects
  /** Creates a model from any form in which a hook may name one. */
  readonly toModel: ToModel
  readonly signal: AbortSignal
  readonly spent: Usage
  readonly now: number
  /** Why the run must end, if it must. The run notices that. */
  readonly checkEnd: () => RunEnd | undefined
  readonly ledger: readonly LedgerEntry[]
  /** The ledger with durations, for observers. */
  readonly timedLedger?: readonly TimedLedgerEntry[] | undefined
  readonly step: number
  /** What a hook is part of, if it is not the step itself: an attempt at a model call, or a check of a streamed answer. */
  readonly place?: string | undefined
  /** How long the run has been working, without the time in which it waited. */
  readonly workedMs: number
  /** In a subagent: the counts of its ancestors, outermost first. */
  readonly ancestors?: readonly Above[] | undefined
  /** The id of the conversation of the root run, for models. */
  readonly conversation?: string | undefined
  /** Adds an entry to the ledger. Not called when the hook decided and changed nothing. */
  readonly note: (at: LedgerPlace, hook: LedgerHook, durationMs: number, what: Partial<LedgerEntry>) => void
  /** Tracks an observer that is still running when the loop continues. */
  readonly watch: (hook: string, trigger: HookTrigger, work: PromiseLike<unknown>) => void
  /** Remembers work that was given up at the time limit of the run: it may still be running. */
  readonly noteStillRunning?: ((what: string) => void) | undefined
  /** Counts what a hook has spent. */
  readonly spend: (usage: TokenUsage) => void
  /** Lets a hook call models. Missing where it may not: in shadow mode, and while an answer is still being streamed. */
  readonly inferFor?: ((hook: InferringHook) => HookInference) | undefined
  /** Where the decisions of shadow hooks are recorded. Shadow hooks do not run where it is missing. */
  readonly shadows?: ShadowLog | undefined
}

export type ShadowLog = {
  /** Runs a shadow hook of an invocation in the background. See run-shadow.ts: a type from there would be a cycle. */
  run(invocation: object, hook: object): void
  /** Records what a shadow hook would have decided. */
  readonly note: (
    at: LedgerPlace & { readonly step: number },
    hook: LedgerHook,
    durationMs: number,
    what?: Partial<LedgerEntry>,
  ) => void
  /** Tracks a shadow hook that is still running. `giveUp` is called if it has not answered when the run ends. */
  readonly follow: (work: Promise<void>, giveUp: () => void) => void
}

/** Where a hook was invoked. */
export type LedgerPlace = {
  readonly plan: { readonly trigger: HookTrigger }
  /** The id of the tool call, at the tool triggers. */
  readonly call: string | undefined
}

/** The fields of a hook that the ledger stores. */
export type LedgerHook = { readonly name: string; readonly mode: LedgerEntry['mode'] }

/**
 * A host that shows another one, with some of it replaced. Nothing is written to the other one unless an override does
 * so, and hooks can neither call models nor make the run notice a cancel.
 */
export function deriveHost(host: HookHost, ...overrides: readonly Partial<HookHost>[]): HookHost {
  const derived: HookHost = {
    effects: host.effects,
    toModel: host.toModel,
    signal: host.signal,
    ancestors: host.ancestors,
    get conversation() {
      return host.conversation
    },
    get spent() {
      return host.spent
    },
    get now() {
      return host.now
    },
    checkEnd: () => host.effects.time.end,
    get ledger() {
      return host.ledger
    },
    get step() {
      return host.step
    },
    get place() {
      return host.place
    },
    get workedMs() {
      return host.workedMs
    },
    note: () => undefined,
    watch: (...observer) => host.watch(...observer),
    noteStillRunning: (what) => host.noteStillRunning?.(what),
    spend: () => undefined,
  }
  for (const each of overrides) Object.defineProperties(derived, Object.getOwnPropertyDescriptors(each))
  return derived
}

/** The host as it is now. It does not change when the run continues. */
export function snapshotHost(host: HookHost): HookHost {
  const { spent, now, ledger, step, place, workedMs } = host
  return deriveHost(host, { spent, now, ledger, step, place, workedMs, watch: () => undefined })
}

/**
 * What hooks inside a performed call did. It is recorded with the call and added to the ledger when the call has ended,
 * because a replay answers the call without running the hooks.
 */
export class Trail {
  readonly entries: LedgerEntry[] = []
  /** How long each hook took. Not recorded. */
  readonly durations: number[] = []
  /** Set when the call has ended: shadow hooks that answer later are added to the ledger directly. */
  isClosed = false

  add(entry: LedgerEntry, durationMs: number): void {
    this.entries.push(entry)
    this.durations.push(durationMs)
  }

  /** The host of the hooks inside the call. */
  hostIn(run: HookHost, ...overrides: readonly Partial<HookHost>[]): HookHost {
    const { shadows } = run
    const note: HookHost['note'] = ({ plan: { trigger } }, { name, mode }, durationMs, what) =>
      this.add({ step: run.step, trigger, hook: name, mode, ...what }, durationMs)
    const noteShadow: NonNullable<typeof shadows>['note'] = (at, hook, durationMs, what) => {
      if (this.isClosed) shadows!.note(at, hook, durationMs, what)
      else if (what !== undefined) note(at, hook, durationMs, { ...what, shadow: true })
    }
    return deriveHost(run, { note, shadows: shadows && { ...shadows, note: noteShadow } }, ...overrides)
  }
}
