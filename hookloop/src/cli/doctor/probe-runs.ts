import { agentTool } from '../../agent/agent-tool.ts'
import { buildAgent, type Agent } from '../../agent/agent.ts'
import type { ApprovalPolicy, Capability, Use } from '../../agent/capability.ts'
import { tool, type Tool } from '../../agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { completion } from '../../capabilities/completion.ts'
import { guards } from '../../capabilities/guards.ts'
import { defined } from '../../hook-files/defined.ts'
import type { EmittedEvent } from '../../state/event.ts'
import type { LanguageModel } from '../../state/inference.ts'
import { liveEffects, type EffectsOptions } from '../../effects/effects.ts'
import { action, type Action } from '../../hooks/action.ts'
import { guard, hook, observe, type Hook } from '../../hooks/hook.ts'
import { isAround } from '../../hooks/triggers.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { sessionPort } from '../../sessions/session/session.ts'
import type { CheckedHook } from './checked-hooks.ts'
import { probeModel, type ProbeTool } from './probe-model.ts'
import { HookActivity, NO_MODEL_CALLS, watched, type MakeHook, type Timeouts } from './watched-hook.ts'

/** The ways to run an agent. A guard has to fire on each of them. */
export const probePaths = ['run', 'stream', 'iterate', 'parallel', 'session', 'resume', 'subagent'] as const

export type ProbePath = (typeof probePaths)[number]

/** The result of a probe run: the activity of the hook, and of a witness hook that always fires where it should. */
export type ProbeResult = {
  readonly activity: HookActivity
  readonly expected: HookActivity
  /** How many tools were executed. */
  readonly executed: number
  readonly ran: number | undefined
}

type Probe = {
  readonly checked: CheckedHook
  readonly agentOf: (how?: AgentChoices) => Agent
  /** The options of each run. */
  readonly how: { readonly signal: AbortSignal; readonly effects: EffectsOptions }
  /** Receives events with warnings of hooks. */
  readonly onEvent: (event: EmittedEvent) => void
}

type AgentChoices = {
  readonly concurrent?: boolean
  /** Whether each call suspends the run for approval. */
  readonly suspends?: boolean
  /** What the model calls, if not the tools of the hook. */
  readonly calls?: readonly ProbeTool[]
  readonly use?: readonly Use[]
}

/**
 * Runs an agent on one path with one hook and nothing else, a model that calls every tool once, and tools that do nothing.
 * Every trigger of the path fires: the model fails once, and the conversation is compacted.
 */
export async function runProbe(
  checked: CheckedHook,
  path: ProbePath,
  { signal, timeouts }: { readonly signal: AbortSignal; readonly timeouts: Timeouts },
): Promise<ProbeResult> {
  const { hook: of, approval: answers, ran } = checked.make()
  const { isFromFile, tools, asked = false, denied = false, fails = false } = checked
  const [activity, expected] = [new HookActivity(path === 'subagent'), new HookActivity(path === 'subagent')]
  let executed = 0
  const execute = (): string => {
    executed++
    if (fails) throw new Error('A simulated failure.')
    return 'probe'
  }
  const onEvent = (event: EmittedEvent): void => recordWarning(event, activity)
  const effects: EffectsOptions = { ...liveEffects(), emit: onEvent }
  const hooks = [watched(of, { activity, timeouts, isFromFile, ran }), witnessOf(of, expected, path)]
  const agentOf = ({ concurrent = false, suspends = false, calls = tools, use = [] }: AgentChoices = {}): Agent =>
    probeAgent(modelFor(calls), [
      ...hooks,
      ...companions(),
      ...(suspends || asked ? [asks] : []),
      ...(denied ? [denies] : []),
      approveAll(answers, suspends),
      ...probeTools(tools, { concurrent, execute }),
      ...use,
    ])
  await paths[path]({ checked, agentOf, how: { signal, effects }, onEvent })
  signal.throwIfAborted()
  return { activity, expected, executed, ran: ran && (asked ? ran() : activity.ran) }
}

/** A handler in settings that fails does not stop the run: its failure is a warning. So is what it tells the user. */
function recordWarning(emitted: EmittedEvent, { failures }: HookActivity): void {
  const event = emitted.type === 'subagent' ? emitted.event : emitted
  const [, why] = (event.type === 'warning' && /^\w+ hook: (.*)/s.exec(event.message)) || []
  if (why !== undefined) failures.push(why)
}

/**
 * A hook of the same kind that decides nothing, to compare with: like it, it is repeated when a run is resumed, or recorded. It
 * fires first, because later hooks do not judge a blocked call. A subagent inherits observers, and not all transforms: there, an
 * observer is compared with.
 */
function witnessOf(
  { triggers, tool: selected, mode, action: of, effect }: Hook,
  activity: HookActivity,
  path: ProbePath,
): Hook {
  const options = { name: 'probe:witness', priority: 1e12, ...(selected !== undefined && { tool: selected }) }
  const made = <M>(make: M, handler: unknown): Hook =>
    (make as MakeHook)(triggers, handler, { ...options, ...(effect && { effect }) })
  const note = (ctx: unknown): unknown => {
    activity.note(ctx as never)
    return ctx
  }
  const isObserver = mode === 'observe' || (mode === 'transform' && path === 'subagent' && of?.inherited !== true)
  if (isObserver) return (observe as unknown as MakeHook)(triggers.map(witnessed), note, options)
  if (triggers.some(isAround)) return made(hook, (ctx: unknown, next: () => unknown) => (note(ctx), next()))
  const make = mode === 'guard' ? guard : hook
  if (of === undefined) return made(make, note)
  const perform: Action['perform'] = (ctx) => Promise.resolve(note(ctx)).then(() => ({}))
  const { inherited, asks: isRepeated } = of
  return made(make, action({ kind: 'probe', label: 'probe', perform, ...defined({ inherited, asks: isRepeated }) }))
}

/** An around trigger is observed where it starts. */
function witnessed(trigger: string): string {
  return trigger.replace('around', 'before')
}

const paths: { readonly [P in ProbePath]: (probe: Probe) => Promise<unknown> } = {
  run: ({ agentOf, how }) => agentOf().run('probe', how),
  stream: ({ agentOf, how }) => consume(agentOf().stream('probe', how)),
  iterate: ({ agentOf, how }) => consume(agentOf().iterate('probe', how)),
  parallel: ({ agentOf, how }) => agentOf({ concurrent: true }).run('probe', how),
  async session({ checked, agentOf, how: { signal }, onEvent }) {
    const agent = agentOf()
    const times = checked.on.includes('onSessionStart') ? 2 : 1 // started, and continued
    for (let i = 0; i < times; i++) {
      const session = agent.session('probe')
      for await (const event of session.stream('probe', { signal })) onEvent(event)
      await session.end()
    }
  },
  async resume({ agentOf, how }) {
    let run = await agentOf({ suspends: true }).run('probe', how)
    for (let round = 0; run.status === 'suspended' && round < 10; round++) {
      const answers = Object.fromEntries(run.pending.map(({ id }) => [id, 'allow' as const]))
      run = await agentOf({ suspends: true }).resume(run, { answers, ...how })
    }
  },
  async subagent({ checked: { tools, agentName = 'probe' }, agentOf, how }) {
    const to = { model: modelFor(tools), tools: tools.map(({ name }) => name), use: companions() }
    const ask = agentTool({
      name: DELEGATES,
      description: 'A probe.',
      input: { type: 'object' },
      to: () => ({ name: agentName, to, input: 'probe' }),
    })
    await agentOf({ calls: [{ name: ask.name }], use: [ask] }).run('probe', how)
  },
}

async function consume(live: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of live);
}

/** Whatever model a hook names, the probe model answers: no provider is called, and nothing is paid for. */
function probeAgent(model: LanguageModel, use: readonly Use[]): Agent {
  const toModel = (source: unknown): LanguageModel => (probeModels.has(source as never) ? (source as never) : model)
  const options = { name: 'probe', model, use: [guards({ maxSteps: 8 }), ...use] }
  return buildAgent(options, { capabilities: [completion()], toModel, sessions: sessionPort(memoryStore()) })
}

const probeModels = new WeakSet<LanguageModel>()

function modelFor(tools: readonly ProbeTool[]): LanguageModel {
  const model = probeModel(tools)
  probeModels.add(model)
  return model
}

/** Hooks that make every trigger fire: one retries the failed model call, one compacts the conversation. */
function companions(): readonly Use[] {
  return [
    hook('onError', (ctx) => ctx.retry(), { name: 'probe:retry', priority: -1e12 }),
    hook('beforeStep', (ctx) => ctx.compact({ keep: 1, summarize: () => 'probe' }), {
      name: 'probe:compact',
      when: ({ state }) => state.stepCount === 1,
    }),
    guard('beforeInference', (ctx) => (probeModels.has(ctx.request.model) ? ctx : ctx.stop(NO_MODEL_CALLS)), {
      name: 'probe:no-model-calls',
    }),
  ]
}

const asks = guard('beforeToolUse', (ctx) => ctx.ask('probe'), { name: 'probe:asks', priority: 1e11 })

const DELEGATES = 'probe_subagent'

const denies = guard(
  'beforeToolUse',
  (ctx) => (ctx.toolCall.name === DELEGATES ? ctx : ctx.block('probe')), // or no subagent would run
  { name: 'probe:denies', priority: -1e12 },
)

/** Approves every call, now or after a suspension. The approval of the hook is called, and its answer ignored. */
function approveAll(own: ApprovalPolicy | undefined, suspends: boolean): Capability {
  if (own === undefined) return approval(suspends ? 'suspend' : () => 'allow')
  return approval(async (question, signal, asker) => {
    if (typeof own.answer === 'function') await own.answer(question, signal, asker)
    return suspends ? 'suspend' : 'allow'
  })
}

function probeTools(
  tools: readonly ProbeTool[],
  how: { readonly concurrent: boolean; readonly execute: () => string },
): readonly Tool[] {
  return tools.map(({ name }) => tool({ name, description: 'A probe.', input: { type: 'object' }, ...how }))
}

/** Which of several hooks changed which argument of which call, when all of them are active. */
export async function changedArguments(
  hooks: readonly Hook[],
  { tools, signal }: { readonly tools: readonly ProbeTool[]; readonly signal: AbortSignal },
): Promise<readonly { readonly call: string; readonly path: string; readonly hook: string }[]> {
  const inert = probeTools(tools, { concurrent: false, execute: () => 'probe' })
  const agent = probeAgent(modelFor(tools), [...hooks, ...companions(), ...inert, approval(() => 'allow')])
  const run = await agent.run('probe', { signal })
  return run.ledger.flatMap(({ trigger, call = '', changes = [], hook: by }) =>
    trigger === 'beforeToolUse' ? changes.map(({ path }) => ({ call, path, hook: by })) : [],
  )
}
