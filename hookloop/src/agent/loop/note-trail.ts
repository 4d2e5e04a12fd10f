import type { LedgerEntry } from '../../state/ledger.ts'
import type { HookHost } from '../../hooks/base-context.ts'
import type { HookTrigger } from '../../hooks/triggers.ts'
import type { AgentParts } from '../agent-parts.ts'

/** What hooks did around a call, told when the call is done. */
export function noteTrail(
  run: HookHost & { readonly parts: AgentParts },
  trail: readonly LedgerEntry[],
  durations: readonly number[],
): void {
  const { stack } = run.parts
  for (const [i, { trigger, hook, mode, ...what }] of trail.entries()) {
    const known = stack.hooks.find((each) => each.name === hook)
    if (known === undefined && what.shadow === true) continue // it is not watched any more
    const noted = known ?? { name: hook, mode }
    run.note({ plan: stack.plan(trigger as HookTrigger), callIndex: undefined }, noted, durations[i] ?? 0, what)
  }
}
