import { toMatcher, type Matcher } from './matcher.ts'
import type { HandlerAnswer } from './answer.ts'
import { eventSpec, eventsWithIf, type ClaudeEvent } from './events.ts'
import { identityOf, type Handler, type HookGroup, type HookSource } from './handlers.ts'
import { merge, type Merged } from './merge.ts'
import type { Payload } from './payload.ts'
import { fitsRule, readRule } from './permission-rule.ts'
import { runHandler, type HandlerWorld } from './run-handler.ts'

/** One handler in its place. */
export type PlacedHandler = {
  readonly handler: Handler
  readonly source: HookSource
  readonly matcher: string | undefined
}

export type RanHandler = PlacedHandler & { readonly answer: HandlerAnswer; readonly durationMs: number }

export type EventResult = {
  readonly merged: Merged
  readonly ran: readonly RanHandler[]
  readonly problems: readonly string[]
}

/** The handlers of each event, with matchers that are read once. */
export class HookTable {
  readonly #groups: ReadonlyMap<ClaudeEvent, readonly (HookGroup & { readonly reading: Matcher })[]>

  constructor(groups: readonly HookGroup[]) {
    this.#groups = Map.groupBy(
      groups.map((group) => ({ ...group, reading: toMatcher(group.matcher, group.event) })),
      ({ event }) => event,
    )
  }

  get events(): readonly ClaudeEvent[] {
    return [...this.#groups.keys()]
  }

  /** The handlers of an event that would run, each once, in the order of the configuration. */
  select(
    { event, matched, input }: Payload,
    cwd: string,
  ): { handlers: readonly PlacedHandler[]; problems: readonly string[] } {
    const groups = this.#groups.get(event) ?? []
    const problems = groups.flatMap(({ reading, source }) =>
      reading.problem === undefined ? [] : [`${source.file}: ${reading.problem}`],
    )
    const seen = new Set<string>()
    const handlers = groups
      .filter(({ reading }) => fitsMatcher(reading, matched, event))
      .flatMap(({ handlers: all, source, matcher }) => all.map((handler) => ({ handler, source, matcher })))
      .filter(({ handler }) => fitsIf(handler, { event, matched, input }, cwd))
      .filter(({ handler, source }) => {
        const identity = identityOf(handler, source)
        return !seen.has(identity) && seen.add(identity)
      })
    return { handlers, problems }
  }

  /** Whether an event has handlers at all. */
  has(event: ClaudeEvent): boolean {
    return this.#groups.has(event)
  }
}

function fitsMatcher(reading: Matcher, matched: readonly string[], event: ClaudeEvent): boolean {
  if (eventSpec(event).matches === undefined) return true
  return matched.some((value) => reading.matches(value))
}

function fitsIf({ if: rule }: Handler, { event, matched, input }: Payload, cwd: string): boolean {
  if (rule === undefined) return true
  if (!eventsWithIf.has(event)) return false
  const read = readRule(rule)
  const toolInput = input['tool_input']
  if (read === undefined) return false
  return fitsRule(read, { names: matched, input: (toolInput ?? {}) as never, cwd })
}

/**
 * Runs all handlers of an event together, on the same input and to their end, and puts their answers together. Those that
 * run beside the agent are started and not waited for.
 */
export async function runEvent(
  table: HookTable,
  payload: Payload,
  { world, isBeside }: { readonly world: HandlerWorld; readonly isBeside?: (late: Promise<RanHandler>) => void },
): Promise<EventResult> {
  const { handlers, problems } = table.select(payload, world.cwd)
  if (problems.length > 0 && failsClosed(payload.event)) {
    return { merged: { decision: 'deny', reason: problems.join('\n') }, ran: [], problems }
  }
  const started = handlers.map(async (placed): Promise<RanHandler> => {
    const begun = performance.now()
    const answer = await runHandler(placed.handler, payload, { source: placed.source, world })
    return { ...placed, answer, durationMs: performance.now() - begun }
  })
  const waited = started.filter((_, i) => !isAsync(handlers[i]!.handler))
  for (const late of started.filter((_, i) => isAsync(handlers[i]!.handler))) isBeside?.(late)
  const ran = await Promise.all(waited)
  return {
    merged: merge(
      ran.map(({ answer }) => answer),
      payload.event,
    ),
    ran,
    problems,
  }
}

/** A matcher that cannot be read matches nothing, except where a call is judged: there nobody passes. */
function failsClosed(event: ClaudeEvent): boolean {
  return event === 'PreToolUse' || event === 'PermissionRequest'
}

function isAsync(handler: Handler): boolean {
  return handler.type === 'command' && handler.async
}
