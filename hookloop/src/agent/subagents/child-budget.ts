import { workedMs } from '../../state/execution.ts'
import type { Above } from '../../state/subagent.ts'
import { addUsage, noUsage, totalTokens, type Usage } from '../../state/usage.ts'
import type { Budget } from '../capability.ts'
import type { RunContext } from '../loop/run-context.ts'

/** Which of how many subagents that begin together. */
export type Share = { readonly index: number; readonly of: number }

/**
 * What the ancestors of a subagent count when it begins. Of what is left to spend, the shares of those that begin with it
 * are set aside: they count as spent for as long as it runs, and what was not needed is there again for the next.
 */
export function aboveChild(run: RunContext, share: Share): readonly Above[] {
  const { parts, family, spent, execution, now, takenOverAt } = run
  const worked = workedMs(execution, Math.max(now, takenOverAt)) // what was known then is told, and the clock stands still
  const levels: readonly Above[] = [...(family?.above ?? []), { usage: noUsage, workedMs: 0 }]
  return levels.map((above, level) => ({
    usage: withSetAside(addUsage(above.usage, spent), parts.budgets[level] ?? {}, share),
    workedMs: above.workedMs + worked,
  }))
}

function withSetAside(spent: Usage, budget: Budget, share: Share): Usage {
  if (share.of === 1) return spent
  const { tokens, costUsd, toolCalls } = budget
  return addUsage(spent, {
    ...(tokens !== undefined && { inputTokens: setAside(tokens - totalTokens(spent), share) }),
    ...(toolCalls !== undefined && { toolCalls: setAside(toolCalls - spent.toolCalls, share) }),
    ...(costUsd !== undefined && { costUsd: Math.max(0, costUsd - spent.costUsd) * (1 - 1 / share.of) }),
  })
}

/** What is left, without a whole share of it. What cannot be divided goes to the first. */
function setAside(left: number, { index, of }: Share): number {
  if (left <= 0) return 0
  const own = Math.floor(left / of) + (index < left % of ? 1 : 0)
  return left - own
}
