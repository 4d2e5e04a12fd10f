import { messageOf } from '../../../errors.ts'
import type { HandlerAnswer } from '../answer/handler-answer.ts'
import { eventSpec, eventsWithIf, type ClaudeEvent } from '../events/claude-events.ts'
import { identityOf, type Handler, type HookGroup, type HookSource } from '../load/handlers.ts'
import { toMatcher, type Matcher } from '../events/matcher.ts'
import { mergeAnswers, type MergedAnswer } from '../answer/merge-answers.ts'
import type { Payload } from '../events/payload.ts'
import { fitsRule, readRule } from '../events/permission-rule.ts'
import { runHandler, type HandlerContext } from './run-handler.ts'

/** One handler in its place. */
export type PlacedHandler = {
  readonly handler: Handler
  readonly source: HookSource
  readonly matcher: string | undefined
}

export type RanHandler = PlacedHandler & { readonly answer: HandlerAnswer; readonly durationMs: number }

export type EventResult = {
  readonly merged: MergedAnswer
  readonly ran: readonly RanHandler[]
  readonly problems: readonly string[]
}

type Selection = { readonly handlers: readonly PlacedHandler[]; readonly problems: readonly string[] }
type ReadGroup = HookGroup & { readonly reading: Matcher }

/** The handlers of each event, with matchers that are read once. */
export class HookTable {
  readonly #groups: ReadonlyMap<ClaudeEvent, readonly ReadGroup[]>

  constructor(groups: readonly HookGroup[]) {
    this.#groups = Map.groupBy(
      groups.map((group) => ({ ...group, reading: toMatcher(group.matcher, group.event) })),
      ({ event }) => event,
    )
  }

  get events(): readonly ClaudeEvent[] {
    return [...this.#groups.keys()]
  }

  /** Whether an event has handlers at all. */
  has(event: ClaudeEvent): boolean {
    return this.#groups.has(event)
  }

  /** Whether any handler runs beside the agent. */
  get hasAsync(): boolean {
    return [...this.#groups.values()].flat().some(({ handlers }) => handlers.some(isAsync))
  }

  /** Whether any handler asks a model. */
  get asksModels(): boolean {
    return [...this.#groups.values()].flat().some(({ handlers }) => handlers.some(asksModel))
  }

  /** The handlers of an event that would run, each once, in the order of the configuration. */
  select(payload: Payload, { cwd, isActive = isAlways }: { cwd: string; isActive?: IsActive }): Selection {
    const problems: string[] = []
    const seen = new Set<string>()
    const handlers = (this.#groups.get(payload.event) ?? [])
      .filter(({ source }) => isActive(source))
      .filter((group) => fitsMatcher(group, payload, problems))
      .flatMap(({ handlers: all, source, matcher }) => all.map((handler) => ({ handler, source, matcher })))
      .filter(({ handler }) => fitsIf(handler, payload, cwd))
      .filter(({ handler, source }) => {
        const identity = identityOf(handler, source)
        return !seen.has(identity) && seen.add(identity)
      })
    return { handlers, problems }
  }
}

/** Whether hooks of a source are in force now: those of a skill or agent are not always. */
export type IsActive = (source: HookSource) => boolean

function isAlways({ kind }: HookSource): boolean {
  return kind !== 'skill' && kind !== 'agent'
}

/** A matcher that cannot be read, or does not come to an end, matches nothing and is told. */
function fitsMatcher({ reading, source, event }: ReadGroup, { matched }: Payload, problems: string[]): boolean {
  if (eventSpec(event).matches === undefined) return true
  try {
    if (reading.problem !== undefined) throw new Error(reading.problem)
    return matched.some((value) => reading.matches(value))
  } catch (error) {
    problems.push(`${source.file}: ${messageOf(error)}`)
    return false
  }
}

/** One that cannot be read leaves nothing out: the handler decides. */
function fitsIf({ if: rule }: Handler, { event, matched, input }: Payload, cwd: string): boolean {
  if (rule === undefined) return true
  if (!eventsWithIf.has(event)) return false
  const read = readRule(rule)
  const toolInput = input['tool_input']
  return read === undefined || fitsRule(read, { names: matched, input: (toolInput ?? {}) as never, cwd })
}

export type RunEventOptions = {
  readonly context: HandlerContext
  /** The context of those that nobody waits for, if it is another one. */
  readonly backgroundContext?: HandlerContext
  readonly isActive?: IsActive
  /** What has run already of what runs once. */
  readonly onceDone?: Set<string>
  /** An agent of a handler is at work, and no handler sets another to work on what it does. */
  readonly isInspecting?: boolean
  /** Takes care of a handler that nobody waits for. */
  readonly isBeside?: (late: Promise<RanHandler>) => void
}

/**
 * Runs all handlers of an event together, on the same input and to their end, and puts their answers together. Those that
 * run beside the agent are started and not waited for.
 */
export async function runEvent(table: HookTable, payload: Payload, options: RunEventOptions): Promise<EventResult> {
  const {
    context,
    backgroundContext = context,
    isActive,
    isBeside,
    isInspecting = false,
    onceDone = new Set(),
  } = options
  const selected = table.select(payload, { cwd: context.cwd, ...(isActive !== undefined && { isActive }) })
  const { problems } = selected
  const unasked = selected.handlers.filter(({ handler }) => isInspecting && handler.type === 'agent')
  if (unasked.length > 0 && payload.event === 'PreToolUse') {
    const reason = 'an agent of a hook made this call, and another would have to judge it'
    return { merged: { decision: 'deny', reason }, ran: [], problems }
  }
  if (problems.length > 0 && failsClosed(payload.event)) {
    return { merged: { decision: 'deny', reason: problems.join('\n') }, ran: [], problems }
  }
  const handlers = withBudget(
    selected.handlers.filter((placed) => !unasked.includes(placed) && isStillDue(placed, onceDone)),
    payload.event,
    context,
  )
  const started = handlers.map((placed, i) =>
    isAsync(placed.handler)
      ? run(placed, payload, backgroundContext)
      : run(placed, payload, context, `${payload.event}${payload.part ?? ''}/${i}`),
  )
  const waited = started.filter((_, i) => !isAsync(handlers[i]!.handler))
  for (const late of started.filter((_, i) => isAsync(handlers[i]!.handler))) isBeside?.(late)
  const ran = await Promise.all(waited)
  const answers = ran.map(({ answer }) => answer)
  return { merged: mergeAnswers(answers, payload.event), ran, problems }
}

async function run(
  placed: PlacedHandler,
  payload: Payload,
  context: HandlerContext,
  key?: string,
): Promise<RanHandler> {
  const begun = performance.now()
  const { handler, source } = placed
  const work = (): Promise<HandlerAnswer> => runHandler(handler, payload, { source, context })
  const isKept =
    key !== undefined &&
    context.recorded !== undefined &&
    (handler.type === 'agent' ? context.askAgent !== undefined : !asksModel(handler))
  const answer = await (isKept ? context.recorded(key, work) : work())
  return { ...placed, answer, durationMs: performance.now() - begun }
}

/** A matcher that cannot be read matches nothing, except where a call is judged: there nobody passes. */
function failsClosed(event: ClaudeEvent): boolean {
  return event === 'PreToolUse' || event === 'PermissionRequest'
}

/** `once` is a word of skills; elsewhere it means nothing. */
function isStillDue({ handler, source }: PlacedHandler, done: Set<string>): boolean {
  if (!handler.once || source.kind !== 'skill') return true
  const identity = identityOf(handler, source)
  return !done.has(identity) && done.add(identity) !== undefined
}

const SESSION_END_MS = 1_500
const MAX_SESSION_END_MS = 60_000

/** All handlers of the end of a session have one time together: they begin together, so each has as much. */
function withBudget(
  handlers: readonly PlacedHandler[],
  event: ClaudeEvent,
  { env }: HandlerContext,
): readonly PlacedHandler[] {
  if (event !== 'SessionEnd') return handlers
  const said = Number(env['CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS'])
  const own = handlers
    .filter(({ handler, source }) => handler.hasOwnTimeout && source.kind !== 'plugin')
    .map(({ handler }) => handler.timeoutMs)
  const budget = said > 0 ? said : Math.min(MAX_SESSION_END_MS, Math.max(SESSION_END_MS, ...own))
  return handlers.map(({ handler, ...placed }) => ({
    ...placed,
    handler: { ...handler, timeoutMs: Math.min(handler.timeoutMs, budget) },
  }))
}

export function asksModel({ type }: Handler): boolean {
  return type === 'prompt' || type === 'agent'
}

function isAsync(handler: Handler): boolean {
  return handler.type === 'command' && handler.async
}
