import type { LedgerEntry, TimedLedgerEntry } from '../../state/ledger.ts'
import type { AgentState } from '../../state/agent-state.ts'
import type { Effects } from '../../effects/effects.ts'
import type { ShadowLog } from '../../hooks/hook-host.ts'
import type { HookInference, InferringHook } from '../../hooks/infer.ts'
import { errorOpinion } from '../../hooks/failure-text.ts'
import { runShadow } from '../../hooks/run-shadow.ts'
import type { HookTrigger } from '../../hooks/triggers.ts'
import type { AgentParts } from '../agent-parts.ts'
import { HookModelCalls } from '../model/hook-infer.ts'
import { BackgroundWork } from './background-work.ts'
import { saysSomething } from './ledger.ts'
import { RunContext, type Overridden, type RunContextOptions } from './run-context.ts'

/** A run, with what its hooks do besides deciding: they watch, run in shadow mode, and call models. */
export class AgentRun extends RunContext {
  readonly shadows: ShadowLog | undefined

  constructor(parts: AgentParts, effects: Effects, state: AgentState, options: RunContextOptions = {}) {
    super(parts, effects, state, options)
    this.shadows = parts.stack.hasShadows ? this.#shadowLog() : undefined
  }

  fromCheckpoint(state = this.base): AgentRun {
    const { log } = this.effects.journal
    const effects = this.effects.fromCheckpoint()
    const from = state.execution?.status === 'running' ? state : this.start
    return new AgentRun(this.parts, effects, from, { ...this.options, ledger: log.ledger })
  }

  get timedLedger(): readonly TimedLedgerEntry[] {
    return this.ledgerOf.inForce
  }

  inferFor(hook: InferringHook): HookInference {
    return new HookModelCalls(this, hook)
  }

  /** What hooks decide now about something that has begun. It is recorded and has no effect. */
  noteOverridden(trigger: HookTrigger, { by, decision, call }: Overridden): void {
    const message = `"${by}" decided "${decision}", but this had begun before`
    this.noteLoop(trigger, { decision: 'overridden', message, value: decision, ...(call !== undefined && { call }) })
  }

  /** Adds what hooks did inside a call that has ended. */
  noteTrail(entries: readonly LedgerEntry[], durations: readonly number[]): void {
    const { stack } = this.parts
    for (const [i, { trigger, hook, mode, ...what }] of entries.entries()) {
      const known = stack.hooks.find((each) => each.name === hook)
      if (known === undefined && what.shadow === true) continue // recorded with an agent that still had this shadow
      const place = { plan: { trigger: trigger as HookTrigger }, call: undefined }
      this.note(place, known ?? { name: hook, mode }, durations[i] ?? 0, what)
    }
  }

  watch(hook: string, trigger: HookTrigger, work: PromiseLike<unknown>): void {
    const { step } = this
    const started = performance.now()
    this.background ??= new BackgroundWork()
    this.background.watch(work, (error) => {
      const durationMs = performance.now() - started
      const definedAt = this.parts.stack.hooks.find(({ name }) => name === hook)?.definedAt?.()
      const entry = { step, hook, trigger, mode: 'observe', ...errorOpinion(error), durationMs } as const
      this.ledgerOf.addLate({ ...entry, ...(definedAt !== undefined && { definedAt }) })
    })
  }

  #shadowLog(): ShadowLog {
    return {
      run: runShadow,
      note: (at, hook, durationMs, what) => {
        if (what !== undefined && saysSomething(what)) this.noteAt(at.step, at, { hook, durationMs }, what)
      },
      follow: (work, giveUp) => (this.background ??= new BackgroundWork()).follow(work, giveUp),
    }
  }
}
