import { messageOf } from '../../../errors.ts'
import type { JsonObject } from '../../../values/json.ts'
import type { HandlerAnswer } from '../answer/handler-answer.ts'
import { eventSpec, eventsWithIf, type ClaudeEvent } from '../events/claude-events.ts'
import { identityOf, type Handler, type HookGroup, type HookSource } from '../load/handlers.ts'
import { toMatcher, type Matcher } from '../events/matcher.ts'
import { mergeAnswers, type MergedAnswer } from '../answer/merge-answers.ts'
import type { Payload } from '../events/common-payload.ts'
import { fitsRule } from '../events/permission-rule.ts'
import { runHandler, type HandlerContext } from './run-handler.ts'

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

/** A matcher that cannot be used. The model does not get the file. */
type MatcherProblem = { readonly file: string; readonly message: string }
type Selection = { readonly handlers: readonly PlacedHandler[]; readonly problems: readonly MatcherProblem[] }
type ReadGroup = HookGroup & { readonly reading: Matcher }

export class HookTable {
  readonly hasAsync: boolean
  readonly asksModels: boolean
  readonly #groups: ReadonlyMap<ClaudeEvent, readonly ReadGroup[]>

  constructor(groups: readonly HookGroup[]) {
    this.hasAsync = groups.some(({ handlers }) => handlers.some(isAsync))
    this.asksModels = groups.some(({ handlers }) => handlers.some(asksModel))
    this.#groups = Map.groupBy(
      groups.map((group) => ({ ...group, reading: toMatcher(group.matcher, group.event) })),
      ({ event }) => event,
    )
  }

  get events(): readonly ClaudeEvent[] {
    return [...this.#groups.keys()]
  }

  has(event: ClaudeEvent): boolean {
    return this.#groups.has(event)
  }

  /** The handlers that match a payload, each once, in the order of the settings. */
  select(payload: Payload, cwd: string, isActive: IsActive): Selection {
    const problems: MatcherProblem[] = []
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

export type IsActive = (source: HookSource) => boolean

function appliesAlways({ kind }: HookSource): boolean {
  return kind !== 'skill' && kind !== 'agent'
}

/** An invalid matcher, or one that times out, matches nothing and is reported. */
function fitsMatcher({ reading, source, event }: ReadGroup, { matched }: Payload, problems: MatcherProblem[]): boolean {
  if (eventSpec(event).matches === undefined) return true
  try {
    if (reading.problem !== undefined) throw new Error(reading.problem)
    return matched.some((value) => reading.matches(value))
  } catch (error) {
    problems.push({ file: source.file, message: messageOf(error) })
    return false
  }
}

function fitsIf({ if: rule }: Handler, { event, matched, input }: Payload, cwd: string): boolean {
  if (rule === undefined) return true
  if (!eventsWithIf.has(event)) return false
  return fitsRule(rule, { names: matched, input: (input['tool_input'] ?? {}) as JsonObject, cwd })
}

export type RunEventOptions = {
  readonly context: HandlerContext
  /** The context of background handlers, if it is a different one. */
  readonly backgroundContext?: HandlerContext
  readonly isActive?: IsActive
  /** Handlers with `once` that have run. */
  readonly onceDone?: Set<string>
  /** Whether the event comes from an agent of a handler. Then no handler runs another agent. */
  readonly isInspecting?: boolean
  /** Called with each background handler. */
  readonly onBackground?: (late: Promise<RanHandler>) => void
}

/** Runs all handlers of an event in parallel on the same input, and merges their answers. Background handlers are only started. */
export async function runEvent(table: HookTable, payload: Payload, options: RunEventOptions): Promise<EventResult> {
  const {
    context,
    backgroundContext = context,
    isActive = appliesAlways,
    onBackground,
    isInspecting = false,
    onceDone = new Set(),
  } = options
  const selected = table.select(payload, context.cwd, isActive)
  const problems = selected.problems.map(({ file, message }) => `${file}: ${message}`)
  const unasked = selected.handlers.filter(({ handler }) => isInspecting && handler.type === 'agent')
  if (unasked.length > 0 && payload.event === 'PreToolUse') {
    const reason = 'the call comes from an agent of a hook, and cannot be judged by another one'
    return { merged: { decision: 'deny', reason }, ran: [], problems }
  }
  if (problems.length > 0 && failsClosed(payload.event)) {
    const reason = selected.problems.map(({ message }) => message).join('\n')
    return { merged: { decision: 'deny', reason }, ran: [], problems }
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
  for (const late of started.filter((_, i) => isAsync(handlers[i]!.handler))) onBackground?.(late)
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
  const start = performance.now()
  const { handler, source } = placed
  const work = (): Promise<HandlerAnswer> => runHandler(handler, payload, { source, context })
  const isRecorded =
    key !== undefined &&
    context.recorded !== undefined &&
    (handler.type === 'agent' ? context.askAgent !== undefined : !asksModel(handler))
  const answer = await (isRecorded ? context.recorded(key, work) : work())
  return { ...placed, answer, durationMs: performance.now() - start }
}

/** Events at which an invalid matcher denies the call. */
function failsClosed(event: ClaudeEvent): boolean {
  return event === 'PreToolUse' || event === 'PermissionRequest'
}

/** `once` applies only to hooks of skills. */
function isStillDue({ handler, source }: PlacedHandler, done: Set<string>): boolean {
  if (!handler.once || source.kind !== 'skill') return true
  const identity = identityOf(handler, source)
  return !done.has(identity) && done.add(identity) !== undefined
}

const SESSION_END_MS = 1_500
const MAX_SESSION_END_MS = 60_000

/** The handlers of SessionEnd share one timeout. They start together, so each of them gets it. */
function withBudget(
  handlers: readonly PlacedHandler[],
  event: ClaudeEvent,
  { env }: HandlerContext,
): readonly PlacedHandler[] {
  if (event !== 'SessionEnd') return handlers
  const configured = Number(env['CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS'])
  const own = handlers
    .filter(({ handler, source }) => handler.hasOwnTimeout && source.kind !== 'plugin')
    .map(({ handler }) => handler.timeoutMs)
  const budget = configured > 0 ? configured : Math.min(MAX_SESSION_END_MS, Math.max(SESSION_END_MS, ...own))
  return handlers.map(({ handler, ...placed }) => ({
    ...placed,
    handler: { ...handler, timeoutMs: Math.min(handler.timeoutMs, budget) },
  }))
}

function asksModel({ type }: Handler): boolean {
  return type === 'prompt' || type === 'agent'
}

function isAsync(handler: Handler): boolean {
  return handler.type === 'command' && handler.async
}
