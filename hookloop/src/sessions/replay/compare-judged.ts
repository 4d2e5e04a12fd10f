import { defaultAsks } from '../../agent/tools/authorize-call.ts'
import type { AgentParts } from '../../agent/agent-parts.ts'
import type { ContinuationEvaluation } from '../../state/continuation.ts'
import { sameJson, toJson } from '../../state/json.ts'
import type { Change } from '../../state/ledger.ts'
import type { Ask, ToolCall } from '../../state/tool-call.ts'
import { divergenceAt } from './divergence.ts'
import type { Rejudgment } from './rejudge.ts'
import { stateDifferences, valueDifferences } from './value-differences.ts'
import type { Judged, RecordedEvent } from './event-recorder.ts'

/** The decision of all hooks at one event. In a difference, only what differs is set. */
export type Decided = {
  /** block > ask > allow; undefined if no hook decided. */
  readonly verdict?: { readonly decision: 'block' | 'ask' | 'allow'; readonly by: string; readonly message: string }
  readonly votes?: readonly ContinuationEvaluation[]
  readonly recovery?: { readonly decision: 'retry' | 'ignore'; readonly afterMs: number; readonly by: string }
  /** A hook failed, or the arguments do not fit the tool. */
  readonly error?: string
}

/** How the decisions of two sets of hooks differ at one event. */
export type Disagreement = {
  readonly was: Decided
  readonly would: Decided
  /** What the changed hooks would have changed in the value and the state. */
  readonly changes?: readonly Change[]
  /** Why a live run would diverge from the recording here, if it would. */
  readonly divergence?: string
}

/** Compares the recorded decision at an event with that of the changed hooks. Undefined if they are the same. */
export async function compareJudged(
  parts: AgentParts,
  event: RecordedEvent,
  { start, judged: would, unanswered }: Rejudgment,
): Promise<Disagreement | undefined> {
  const was = await withProblem(parts, event)
  const [before, after] = [was, would].map((judged) => decidedOf(judged, defaultAsksAt(parts, event)))
  const differing = aspects.filter((each) => !sameJson(toJson(before![each] ?? null), toJson(after![each] ?? null)))
  const changes = [
    ...valueDifferences(was, would),
    ...stateDifferences([event.start.state, was.state], [start, would.state]),
  ]
  const divergence = divergenceAt(event, { was, would, unanswered, asks: defaultAsksAt(parts, event) })
  if (differing.length === 0 && changes.length === 0 && divergence === undefined) return undefined
  return {
    was: only(before!, differing),
    would: only(after!, differing),
    ...(changes.length > 0 && { changes }),
    ...(divergence !== undefined && { divergence }),
  }
}

const aspects = ['verdict', 'votes', 'recovery', 'error'] as const

function only(decided: Decided, shown: readonly (keyof Decided)[]): Decided {
  return Object.fromEntries(shown.flatMap((each) => (decided[each] === undefined ? [] : [[each, decided[each]]])))
}

/** A recording does not say whether arguments fit the tool. */
async function withProblem(parts: AgentParts, { trigger, judged }: RecordedEvent): Promise<Judged> {
  const call = judged.facts['toolCall'] as ToolCall | undefined
  if (trigger !== 'beforeToolUse' || call === undefined || judged.args === undefined) return judged
  if (judged.blocked !== undefined || judged.failure !== undefined) return judged
  const parsed = await parts.tools.get(call.name)?.parse(judged.args)
  return parsed !== undefined && 'problem' in parsed ? { ...judged, problem: parsed.problem } : judged
}

/** What would be asked if no hook decided. A call that was approved is not asked about again. */
function defaultAsksAt(parts: AgentParts, { trigger, changes, start }: RecordedEvent): readonly Ask[] {
  const call = start.facts['toolCall'] as ToolCall | undefined
  const tool = trigger === 'beforeToolUse' && changes ? parts.tools.get(call?.name ?? '') : undefined
  return tool === undefined ? [] : defaultAsks(parts, tool)
}

function decidedOf(judged: Judged, asks: readonly Ask[]): Decided {
  const { votes, recovery, failure, problem } = judged
  const verdict = verdictOf(judged, asks)
  const error = failure?.message ?? problem
  return {
    ...(verdict !== undefined && { verdict }),
    ...(votes.length > 0 && { votes }),
    ...(recovery !== undefined && { recovery }),
    ...(error !== undefined && { error }),
  }
}

function verdictOf({ blocked, asks, allowed }: Judged, byDefault: readonly Ask[]): Decided['verdict'] {
  if (blocked !== undefined) return { decision: 'block', ...blocked }
  const asked = asks.length > 0 || allowed !== undefined ? asks : byDefault
  if (asked.length > 0) {
    const [by, message] = [asked.map((ask) => ask.by).join(', '), asked.map((ask) => ask.message).join('; ')]
    return { decision: 'ask', by, message }
  }
  return allowed && { decision: 'allow', ...allowed }
}
