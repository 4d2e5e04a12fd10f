import type { ToModel } from '../../state/inference.ts'
import type { LedgerEntry } from '../../state/ledger.ts'
import type { List } from '../../state/list.ts'
import type { Above } from '../../state/subagent.ts'
import { addTokens, noTokens, type TokenUsage, type Usage } from '../../state/usage.ts'
import type { Effects } from '../../effects/effects.ts'
import type { HookHost, LedgerHook, LedgerPlace, ShadowLog } from '../../hooks/base-context.ts'
import type { HookTrigger } from '../../hooks/triggers.ts'

/**
 * A run as hooks inside a performed call see it. What they do is kept with the call and told when it has ended, because
 * a replay answers the call without running them.
 */
export class TrailHost implements HookHost {
  protected readonly run: HookHost
  readonly #trail: LedgerEntry[]
  readonly #durations: number[]
  readonly effects: Effects
  /** What the hooks have spent. It is billed with the call. */
  spentByHooks = noTokens
  /** The key of the attempt that hooks are asked about. */
  place: string

  constructor(run: HookHost, trail: LedgerEntry[], durations: number[], effects = run.effects) {
    this.run = run
    this.effects = effects
    this.#trail = trail
    this.#durations = durations
    this.place = run.place
  }

  get spent(): Usage {
    return this.run.spent
  }
  get now(): number {
    return this.run.now
  }
  get signal(): AbortSignal {
    return this.run.signal
  }
  get cancelled(): boolean {
    return this.run.signal.aborted // inside a performed call, what is noticed is recorded with it
  }
  get ledger(): List<LedgerEntry> {
    return this.run.ledger
  }
  get above(): readonly Above[] | undefined {
    return this.run.above
  }
  get toModel(): ToModel {
    return this.run.toModel
  }
  /** Shadows do not run here, unless somebody tells what they would have done. */
  get shadows(): ShadowLog | undefined {
    return undefined
  }
  get step(): number {
    return this.run.step
  }

  note(
    { plan: { trigger } }: LedgerPlace,
    { name, mode }: LedgerHook,
    durationMs: number,
    what?: Partial<LedgerEntry>,
  ): void {
    this.#trail.push({ step: this.step, trigger, hook: name, mode, ...what })
    this.#durations.push(durationMs)
  }

  spend(usage: TokenUsage): void {
    this.spentByHooks = addTokens(this.spentByHooks, usage)
  }

  watch(hook: string, trigger: HookTrigger, work: PromiseLike<unknown>): void {
    this.run.watch(hook, trigger, work)
  }
}
