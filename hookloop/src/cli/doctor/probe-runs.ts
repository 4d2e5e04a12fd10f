import { agentTool } from '../../agent/subagents/agent-tool.ts'
import { buildAgent, type Agent } from '../../agent/agent.ts'
import type { ApprovalPolicy, Capability, Use } from '../../agent/capability.ts'
import { tool, type Tool } from '../../agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { completion } from '../../capabilities/completion.ts'
import { guards } from '../../capabilities/guards.ts'
import type { AgentEvent } from '../../state/event.ts'
import type { LanguageModel } from '../../state/inference.ts'
import { liveEffects, type EffectsFactory } from '../../effects/effects.ts'
import { action, type Action } from '../../hooks/action.ts'
import { guard, hook, observe, type Hook } from '../../hooks/hook.ts'
import { isAround } from '../../hooks/triggers.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { sessionPort } from '../../sessions/session/session.ts'
import { canaryModel, type CanaryTool } from './probe-model.ts'
import { NOT_ASKED, Sightings, watched, type Waiting } from './watched-hook.ts'

/** The ways a call may come about. A guard has to see it on every one of them. */
export const canaryPaths = ['run', 'stream', 'iterate', 'parallel', 'session', 'resume', 'subagent'] as const

export type CanaryPath = (typeof canaryPaths)[number]

/** A hook that is looked at, and what has to happen for it to fire. */
export type Subject = {
  /** Makes it anew: what it remembers of one flight is none of the next one's business. */
  readonly make: () => Made
  readonly isOfFile: boolean
  /** Where it does something. */
  readonly on: readonly string[]
  /** The tools that are called. */
  readonly tools: readonly CanaryTool[]
  /** They fail. */
  readonly fails?: boolean
  /** A guard denies each call. */
  readonly denied?: boolean
  /** Somebody is asked about each call, and that is where it runs. */
  readonly asked?: boolean
  /** What the agent is called that works for another. */
  readonly agentName?: string | undefined
}

export type Made = {
  readonly hook: Hook
  /** How it answers questions, if that is what it does. */
  readonly approval?: ApprovalPolicy | undefined
  /** How often what it stands for has run, where it may fire and find nothing to do. */
  readonly ran?: () => number
}

/** What was seen on one path: of the hook, and of one that always fires where it should. */
export type Flight = {
  readonly seen: Sightings
  readonly expected: Sightings
  /** How many canaries were called. */
  readonly executed: number
  readonly ran: number | undefined
}

type Flying = {
  readonly subject: Subject
  readonly hooks: readonly Hook[]
  readonly approval: ApprovalPolicy | undefined
  readonly signal: AbortSignal
  readonly executed: { count: number }
  /** Hears what hooks warn of. */
  readonly warned: (event: unknown) => void
  readonly effects: EffectsFactory
}

/**
 * Lets one hook watch over a run on one path, with nothing else in force, a model that calls every tool once, and tools that
 * do nothing. Every moment that the path has comes by: the model fails once, and the conversation is summed up.
 */
export async function flyCanary(
  subject: Subject,
  path: CanaryPath,
  { signal, waiting }: { readonly signal: AbortSignal; readonly waiting: Waiting },
): Promise<Flight> {
  const { hook: of, approval: answers, ran } = subject.make()
  const [seen, expected] = [new Sightings(path === 'subagent'), new Sightings(path === 'subagent')]
  const executed = { count: 0 }
  const warned = (event: unknown): void => noteWarning(event as AgentEvent, seen)
  const flying: Flying = {
    subject,
    hooks: [watched(of, { seen, waiting, isOfFile: subject.isOfFile, ran }), witnessOf(of, expected, path)],
    approval: answers,
    signal,
    executed,
    warned,
    effects: (how) => liveEffects()({ ...how, emit: (event) => (warned(event), how.emit?.(event)) }),
  }
  await paths[path](flying)
  signal.throwIfAborted()
  return { seen, expected, executed: executed.count, ran: ran && (subject.asked === true ? ran() : seen.ran) }
}

/** What a handler of settings fails with lets the run go on, and is told. What it says to the user is told as well. */
function noteWarning(told: AgentEvent, { failures }: Sightings): void {
  const event = told.type === 'subagent' ? told.event : told
  const [, why] = (event.type === 'warning' && /^\w+ hook: (.*)/s.exec(event.message)) || []
  if (why !== undefined) failures.push(why)
}

/**
 * A hook of the same kind that has no opinion, to compare with. It comes first, because what is blocked is not judged any
 * more. Into a subagent goes what watches, and not all that changes: there, whoever watches is compared with.
 */
function witnessOf({ triggers, tool: selected, mode, action: of }: Hook, seen: Sightings, path: CanaryPath): Hook {
  const options = { name: 'canary:witness', priority: 1e12, ...(selected !== undefined && { tool: selected }) }
  const made = <M>(make: M, handler: unknown, on: readonly string[] = triggers): Hook =>
    (make as Loose)(on, handler, options)
  const note = (ctx: unknown): unknown => {
    seen.note(ctx as never)
    return ctx
  }
  if (mode === 'guard') return made(guard, note)
  const isWatching = mode === 'observe' || (path === 'subagent' && of?.inherited !== true)
  if (isWatching) return made(observe, note, triggers.map(witnessed))
  if (triggers.some(isAround)) return made(hook, (ctx: unknown, next: () => unknown) => (note(ctx), next()))
  if (of === undefined) return made(hook, note)
  const perform: Action['perform'] = (ctx) => Promise.resolve(note(ctx)).then(() => ({}))
  const inherited = of.inherited === true && { inherited: true as const }
  return made(hook, action({ kind: 'canary', label: 'canary', ...inherited, perform }))
}

/** A call that is wrapped is watched where it begins. */
function witnessed(trigger: string): string {
  return trigger.replace('around', 'before')
}

type Loose = (on: readonly string[], handler: unknown, options: object) => Hook

const paths: { readonly [P in CanaryPath]: (flying: Flying) => Promise<void> } = {
  async run(flying) {
    await agentOf(flying).run('canary', howFor(flying))
  },
  async stream(flying) {
    await everything(agentOf(flying).stream('canary', howFor(flying)))
  },
  async iterate(flying) {
    await everything(agentOf(flying).iterate('canary', howFor(flying)))
  },
  async parallel(flying) {
    await agentOf(flying, { concurrent: true }).run('canary', howFor(flying))
  },
  async session(flying) {
    const agent = agentOf(flying)
    const times = flying.subject.on.includes('onSessionStart') ? 2 : 1 // begun, and taken up again
    for (let i = 0; i < times; i++) {
      const session = agent.session('canary')
      await everything(session.stream('canary', { signal: flying.signal }), flying.warned)
      await session.end()
    }
  },
  async resume(flying) {
    let run = await agentOf(flying, { waits: true }).run('canary', howFor(flying))
    for (let round = 0; run.status === 'suspended' && round < 10; round++) {
      const answers = Object.fromEntries(run.pending.map(({ id }) => [id, 'allow' as const]))
      run = await agentOf(flying, { waits: true }).resume(run, { answers, ...howFor(flying) })
    }
  },
  async subagent(flying) {
    const { subject } = flying
    const inner = modelFor(subject.tools)
    const names = subject.tools.map(({ name }) => name)
    const spec = { model: inner, tools: names, use: companions(inner) }
    const ask = agentTool({
      name: DELEGATES,
      description: 'A canary.',
      input: { type: 'object' },
      to: () => ({ name: subject.agentName ?? 'canary', to: spec, input: 'canary' }),
    })
    await agentOf(flying, { calls: [{ name: ask.name }], use: [ask] }).run('canary', howFor(flying))
  },
}

function howFor({ signal, effects }: Flying): { readonly signal: AbortSignal; readonly effects: EffectsFactory } {
  return { signal, effects }
}

async function everything(live: AsyncIterable<unknown>, tell?: (event: unknown) => void): Promise<void> {
  for await (const each of live) tell?.(each)
}

type How = {
  readonly concurrent?: boolean
  /** Whether each call waits for a person who answers later. */
  readonly waits?: boolean
  /** What the model calls, if it is something else. */
  readonly calls?: readonly CanaryTool[]
  readonly use?: readonly Use[]
}

function agentOf(flying: Flying, { concurrent = false, waits = false, calls, use = [] }: How = {}): Agent {
  const { subject, hooks, executed } = flying
  const model = modelFor(calls ?? subject.tools)
  return flock(model, [
    guards({ maxSteps: 8 }),
    ...hooks,
    ...companions(model),
    ...(waits || subject.asked === true ? [asks] : []),
    ...(subject.denied === true ? [denies] : []),
    answering(flying, waits),
    ...canaries(subject, { concurrent, executed }),
    ...use,
  ])
}

/** Whatever model a hook names, a canary answers for it: nobody else is asked, and nothing is paid for. */
function flock(model: LanguageModel, use: readonly Use[]): Agent {
  const toModel = (source: unknown): LanguageModel => (canaryModels.has(source as never) ? (source as never) : model)
  const options = { name: 'canary', model, use }
  return buildAgent(options, { capabilities: [completion()], toModel, sessions: sessionPort(memoryStore()) })
}

const canaryModels = new WeakSet<LanguageModel>()

function modelFor(tools: readonly CanaryTool[]): LanguageModel {
  const model = canaryModel(tools)
  canaryModels.add(model)
  return model
}

/** What sees to it that everything comes by: the failure of the model is recovered from, the conversation is summed up. */
function companions(model: LanguageModel): readonly Use[] {
  return [
    hook('onError', (ctx) => ctx.retry(), { name: 'canary:retry', priority: -1e12 }),
    hook('beforeStep', (ctx) => ctx.compact({ keep: 1, summarize: () => 'canary' }), {
      name: 'canary:compact',
      when: ({ state }) => state.stepCount === 1,
    }),
    guard('beforeInference', (ctx) => (canaryModels.has(ctx.request.model) ? ctx : ctx.stop(NOT_ASKED)), {
      name: `canary:nobody else than ${model.modelId}`,
    }),
  ]
}

const asks = guard('beforeToolUse', (ctx) => ctx.ask('canary'), { name: 'canary:asks', priority: 1e11 })

const DELEGATES = 'canary_subagent'

const denies = guard(
  'beforeToolUse',
  (ctx) => (ctx.toolCall.name === DELEGATES ? ctx : ctx.block('canary')), // or nobody would work inside
  { name: 'canary:denies', priority: -1e12 },
)

/** Every question is answered with yes, now or later. What else answers questions is heard, and not heeded. */
function answering({ approval: heard }: Flying, waits: boolean): Capability {
  if (heard === undefined) return approval(waits ? 'suspend' : () => 'allow')
  return approval(async (question, signal, asker) => {
    if (typeof heard.answer === 'function') await heard.answer(question, signal, asker)
    return waits ? 'suspend' : 'allow'
  })
}

function canaries(
  { tools, fails = false }: Subject,
  { concurrent, executed }: { readonly concurrent: boolean; readonly executed: { count: number } },
): readonly Tool[] {
  return tools.map(({ name }) =>
    tool({
      name,
      description: 'A canary.',
      input: { type: 'object' },
      concurrent,
      execute: () => {
        executed.count++
        if (fails) throw new Error('A canary of a failure.')
        return 'canary'
      },
    }),
  )
}

/** Which of several hooks changed which argument of which call, when all of them are in force. */
export async function changedArguments(
  hooks: readonly Hook[],
  { tools, signal }: { readonly tools: readonly CanaryTool[]; readonly signal: AbortSignal },
): Promise<readonly { readonly call: string; readonly path: string; readonly hook: string }[]> {
  const model = modelFor(tools)
  const subject = { tools, make: () => ({ hook: hooks[0]! }), isOfFile: true, on: [] }
  const use = [...hooks, ...companions(model), ...canaries(subject, { concurrent: false, executed: { count: 0 } })]
  const run = await flock(model, [guards({ maxSteps: 8 }), ...use, approval(() => 'allow')]).run('canary', { signal })
  return run.ledger.flatMap(({ trigger, call = '', changes = [], hook: by }) =>
    trigger === 'beforeToolUse' ? changes.map(({ path }) => ({ call, path, hook: by })) : [],
  )
}
