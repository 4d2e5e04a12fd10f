import { checkOptions } from '../values/check-options.ts'
import { isPlainObject } from '../values/describe-value.ts'
import { toCheckedReply } from '../core/model/send-request.ts'
import { inferFor } from '../core/model/infer.ts'
import { isTool } from '../core/agent/tool.ts'
import { AgentState } from '../core/state/agent-state.ts'
import { noVotes } from '../core/state/continuation.ts'
import type { ExecutionFields, Step } from '../core/state/execution.ts'
import {
  messagesOf,
  toResponse,
  withMessages,
  type InferenceRequest,
  type LanguageModel,
  type ModelSource,
} from '../core/state/inference.ts'
import { exactJson, isJsonObject, type Json, type JsonObject } from '../values/json.ts'
import type { LedgerEntry } from '../core/state/ledger.ts'
import { List } from '../core/state/list.ts'
import { textMessage, type Message } from '../core/state/message.ts'
import { addTokens, noTokens, noUsage, type TokenUsage, type Usage } from '../core/state/usage.ts'
import { looseEffects } from '../core/effects/effects.ts'
import type { HookInference, InferOptions } from '../core/hooks/infer.ts'
import type { FactValues, Recovery } from '../core/hooks/base-context.ts'
import type { HookHost, LedgerHook, LedgerPlace } from '../core/hooks/hook-host.ts'
import { Invocation } from '../core/hooks/invocation.ts'
import type { Hook } from '../core/hooks/hook.ts'
import { toOutcome, type HookOutcome } from '../core/hooks/outcome.ts'
import { HookFailure, runGuards, runObservers, runTransforms } from '../core/hooks/run-hooks.ts'
import { HookPlans } from '../core/hooks/hook-plans.ts'
import { isAround, specOf, type Facts, type HookTrigger } from '../core/hooks/triggers.ts'
import { AgentError } from '../errors.ts'
import { modelMaker } from '../models/to-model.ts'

/** What the hook under test gets, as far as it matters. Everything else has a default. */
export type FactsToFire<T extends HookTrigger> = {
  readonly [K in keyof Facts[T]]?: Facts[T][K] extends readonly unknown[] ? Facts[T][K] : Partial<Facts[T][K]>
} & {
  /** A complete state, for example of a run in the test. Generated if omitted. */
  readonly state?: AgentState
  readonly metadata?: JsonObject
  readonly messages?: readonly Message[]
  readonly spent?: Partial<Usage>
  readonly now?: number
  /** The model for `ctx.infer` if the hook names no other. */
  readonly model?: ModelSource
}

/**
 * Runs one hook at one trigger, as an agent would, and returns what it decided and changed. If `tool` or `when` do not match, the
 * outcome is empty. A guard that fails returns its block; a transform that throws rejects.
 *
 * @example
 * const outcome = await fire(noPush, 'beforeToolUse', { toolCall: { name: 'bash', args: { command: 'git push' } } })
 * assert.deepEqual(outcome, { decision: 'block', message: 'Agents never push.' })
 */
export async function fire<T extends HookTrigger, K extends T>(
  hook: Hook<T>,
  trigger: K,
  facts: FactsToFire<NoInfer<K>> = {},
): Promise<HookOutcome> {
  if (!hook.triggers.includes(trigger) || isAround(trigger)) {
    const why = isAround(trigger)
      ? `fire() cannot run ${trigger as string}, which wraps a call. Test it with scriptedModel and agent.run.`
      : `"${hook.name}" is on ${hook.triggers.join(', ')}, not on ${trigger}.`
    throw new AgentError('HOOK_INVALID_OPTION', why, { value: trigger })
  }
  checkOptions('fire', facts, [...specOf(trigger).carries, ...always])
  const given = facts as FactsToFire<HookTrigger> & { toolCall?: { name?: string } }
  for (const [fact, names] of Object.entries(namesIn)) {
    const value = (given as { readonly [fact: string]: unknown })[fact]
    if (isPlainObject(value)) checkOptions(`fire: ${fact}`, value, names)
  }
  const toolName = trigger.endsWith('ToolUse') ? (given.toolCall?.name ?? 'tool') : undefined
  const inForce: Hook = hook.shadow ? { ...hook, shadow: false } : hook // a hook in shadow mode is tested for what it would do
  const plan = new HookPlans([inForce], toolName === undefined ? [] : [toolName]).of(trigger, toolName)
  const seen = await parsedFacts(hook, factsFrom(trigger, given))
  const stage = new Stage(given)
  const firing = new Invocation(stage, plan, given.state ?? stateFrom(given), seen)
  const { tool } = hook
  if (isTool(tool)) firing.fits = async () => 'value' in (await tool.parse((seen['toolCall'] as { args: Json }).args))
  const before = firing.draft
  try {
    await runTransforms(firing, plan.transforms)
  } catch (thrown) {
    throw thrown instanceof HookFailure ? thrown.error : thrown
  }
  await runGuards(firing, plan.guards)
  runObservers(firing, plan.observers)
  await Promise.all(stage.watched) // a run does not wait for observers, but a test needs their results
  const verdict = verdictOf(firing)
  const votes = firing.votes.map(({ source, ...vote }) => ({
    ...vote,
    message: firing.failures?.get(source) ?? vote.message,
  }))
  const { by: _by, ...recovery } = firing.recovery ?? {}
  const chosen = firing.recovery === undefined ? undefined : (recovery as Recovery)
  const { compaction: compact } = firing
  return toOutcome(before, { ...firing.draft, votes, verdict, recovery: chosen, spent: stage.spentByHook, compact })
}

function verdictOf(firing: Invocation): Parameters<typeof toOutcome>[1]['verdict'] {
  const { blocked, failures } = firing
  if (blocked !== undefined) return { decision: 'block', message: failures?.get(blocked.by) ?? blocked.message }
  const ask = firing.asks[0] ?? (firing.allowed === undefined ? firing.defaultAsks[0] : undefined)
  if (ask !== undefined) return { decision: 'ask', message: ask.message }
  return firing.allowed && { decision: 'allow', message: firing.allowed.message }
}

/** What can be given at every trigger. */
const always = ['state', 'metadata', 'messages', 'spent', 'now', 'model']

/** A run with a single event. */
class Stage implements HookHost {
  readonly effects = looseEffects({ signal: new AbortController().signal })
  readonly step = 0
  readonly checkEnd = (): undefined => undefined
  readonly workedMs = 0
  readonly toModel = modelMaker()
  readonly spent: Usage
  readonly #now: number | undefined
  ledger: readonly LedgerEntry[] = []
  spentByHook: TokenUsage | undefined
  readonly watched: PromiseLike<unknown>[] = []
  readonly #model: LanguageModel

  constructor(given: { readonly spent?: Partial<Usage>; readonly now?: number; readonly model?: ModelSource }) {
    this.spent = { ...noUsage, ...given.spent }
    this.#now = given.now
    this.#model = given.model === undefined ? noModel : this.toModel(given.model)
  }

  get now(): number {
    return this.#now ?? this.effects.now()
  }
  get signal(): AbortSignal {
    return this.effects.signal
  }
  note({ plan: { trigger } }: LedgerPlace, { name, mode }: LedgerHook, _ms: number, what: Partial<LedgerEntry>): void {
    this.ledger = [...this.ledger, { step: 0, trigger, hook: name, mode, ...what }]
  }
  watch(_hook: string, _trigger: HookTrigger, work: PromiseLike<unknown>): void {
    this.watched.push(work)
  }
  spend(usage: TokenUsage): void {
    this.spentByHook = addTokens(this.spentByHook ?? noTokens, usage)
  }
  /** Models are really called, without guards. */
  inferFor(): HookInference {
    const asking = {
      spent: noTokens,
      infer: (asked: InferOptions) =>
        inferFor(asked, {
          toModel: this.toModel,
          model: this.#model,
          send: async ({ request: { model, ...rest }, tools }) => {
            const reply = await model.infer({ ...rest, tools }, { signal: this.signal })
            const response = toCheckedReply(reply, model, rest)
            asking.spent = addTokens(asking.spent, response.usage)
            return response
          },
        }),
      close: async () => this.spend(asking.spent),
    }
    return asking
  }
}

function stateFrom({
  metadata = {},
  messages = [],
}: {
  metadata?: JsonObject
  messages?: readonly Message[]
}): AgentState {
  const execution: ExecutionFields = {
    id: 'fire.1',
    status: 'running',
    startedAt: 0,
    waitedMs: 0,
    steps: List.from<Step>([]),
    votes: [],
    usage: noUsage,
    failures: 0,
    continuations: { inRow: 0, total: 0 },
    hooks: [],
  }
  let state = AgentState.create({ agentId: 'fire', execution }).withMessages(messages)
  for (const [key, value] of Object.entries(metadata)) state = state.withMetadata(key, value)
  return state
}

const noModel: LanguageModel = {
  provider: 'none',
  modelId: 'none',
  infer: () => Promise.reject(new Error('fire() was given no model to ask: fire(hook, trigger, { model })')),
}

const request: InferenceRequest = { model: noModel, system: '', messages: [], tools: [] }

const step: Step = {
  index: 0,
  type: 'finalResponse',
  text: '',
  toolCalls: [],
  toolExecutions: [],
  errors: [],
  finishReason: 'stop',
  usage: noTokens,
  messageCount: 0,
}

/** The fields of each fact that may be given in part: one with another name would leave its default. */
const namesIn: { readonly [fact: string]: readonly string[] } = {
  toolCall: ['id', 'name', 'args'],
  toolExecution: ['name', 'status', 'output', 'by', 'withheld', 'truncated', 'rejected', 'interrupted', 'usage'],
  request: ['model', 'system', 'messages', 'tools', 'toolChoice', 'responseFormat', 'settings'],
  response: ['content', 'text', 'usage', 'finishReason', 'modelId', 'warnings'],
  step: [...Object.keys(step), 'outcome'],
  subagent: ['name', 'call', 'status', 'spent'],
  outcome: ['shouldContinue', 'stopReason', 'resolvedBy', 'evaluations'],
  error: ['code', 'message', 'during'],
  spent: Object.keys(noUsage),
}

/** Defaults for everything that a trigger can carry. */
const defaults = {
  sessionId: 'session',
  source: 'test',
  reason: 'test',
  input: textMessage('user', ''),
  request,
  response: toResponse({ content: [], finishReason: 'stop' }),
  toolCall: { id: 'call-1', name: 'tool', args: {} },
  toolExecution: { status: 'ok', output: null },
  step,
  subagent: { name: 'subagent', call: 'call-1', status: 'completed', spent: noUsage },
  outcome: noVotes,
  continuations: 0,
  output: null,
  pending: [],
  answers: {},
  error: { code: 'HOOK_FAILED', message: 'test', during: 'beforeStep' },
  during: 'beforeStep',
  consecutiveFailures: 1,
  messages: [],
  requested: false,
  summary: '',
} satisfies { [fact: string]: unknown }

function factsFrom(trigger: HookTrigger, given: { readonly [fact: string]: unknown }): FactValues {
  const facts: { [fact: string]: unknown } = {}
  for (const [name, fallback] of Object.entries<unknown>(defaults)) {
    if (!specOf(trigger).carries.includes(name)) continue
    const value = given[name]
    facts[name] = isJsonObject(fallback) && isJsonObject(value) ? { ...fallback, ...value } : (value ?? fallback)
  }
  const asked = facts['request'] as InferenceRequest | undefined
  return asked === undefined ? facts : { ...facts, request: withMessages(asked, messagesOf(asked)) }
}

/** Guards and observers get parsed arguments, if the hook names the tool itself. */
async function parsedFacts(hook: Hook, facts: FactValues): Promise<FactValues> {
  const call = facts['toolCall'] as { readonly args: Json } | undefined
  if (call === undefined) return facts
  const args = exactJson(call.args, 'arguments')
  if (hook.mode === 'transform' || !isTool(hook.tool)) return { ...facts, toolCall: { ...call, args } }
  const parsed = await hook.tool.parse(args)
  if ('value' in parsed) return { ...facts, toolCall: { ...call, args: parsed.value } }
  throw new AgentError('TOOL_INVALID', `The arguments do not fit the tool "${hook.tool.name}": ${parsed.problem}`, {
    value: args,
  })
}
