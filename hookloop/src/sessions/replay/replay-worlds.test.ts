import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { shadowWorlds, type Played } from '../../core/loop/shadow-worlds.fixture.ts'
import type { Agent } from '../../core/agent/agent.ts'
import type { Use } from '../../core/agent/capability.ts'
import type { RunOptions } from '../../core/agent/run-options.ts'
import type { Run } from '../../core/agent/run.ts'
import { createAgent } from '../../create-agent.ts'
import type { Step } from '../../core/state/execution.ts'
import type { AgentError } from '../../errors.ts'
import { guard, hook, type Hook } from '../../core/hooks/hook.ts'
import { isAround, specOf, triggerNames, type GuardTrigger, type PlainTrigger } from '../../core/hooks/triggers.ts'
import type { ReplayPlace } from './compare-ledgers.ts'
import { replay, type ReplayReport } from './replay.ts'
import { formatReplay } from './format-replay.ts'
import { memoryStore } from '../stores/memory-store.ts'

// Runs that go every way a run can go, and what other hooks would have made of them: what a replay says is compared with
// what happens when those hooks are really there.

const plainTriggers = triggerNames.filter((name): name is PlainTrigger => !isAround(name))
const guardTriggers = plainTriggers.filter((name): name is GuardTrigger => specOf(name).guard.length > 0)

type Recorded = { readonly agent: Agent; readonly session: string; readonly run: number }

/** The runs of a world in sessions, and how to replay them. */
async function record(name: string, extra: readonly Use[] = []) {
  const store = memoryStore()
  const recorded: Recorded[] = []
  const played = await shadowWorlds[name]!(extra, (options) => {
    const agent = createAgent({ ...options, store })
    return inSessions(agent, recorded)
  })
  const reports = (hooks: readonly Hook[] = []): Promise<ReplayReport[]> =>
    Promise.all(
      recorded.map(async ({ agent, session, run }) => replay((await store.read(session))!, { agent, run, hooks })),
    )
  return { played, reports }
}

/** An agent whose runs are runs of sessions: a run that continues an earlier one is the next of its session. */
function inSessions(agent: Agent, recorded: Recorded[]): Agent {
  const start = ({ from, ...options }: RunOptions = {}): RunOptions => {
    const last = recorded.at(-1)
    const session = from === undefined ? `s${recorded.length}` : last!.session
    recorded.push({ agent, session, run: from === undefined ? 0 : last!.run + 1 })
    return { ...options, session }
  }
  return {
    ...agent,
    run: (input, options) => agent.run(input, start(options)),
    stream: (input, options) => agent.stream(input, start(options)),
    iterate: (input, options) => agent.iterate(input, start(options)),
    resume: (_from, options) => agent.resume(recorded.at(-1)!.session, options),
    resumeStream: (_from, options) => agent.resumeStream(recorded.at(-1)!.session, options),
  }
}

describe('the same hooks would have decided the same', () => {
  for (const name of Object.keys(shadowWorlds)) {
    test(`in the world "${name}"`, async () => {
      const { reports } = await record(name)
      const found = await reports()
      assert.ok(found.length > 0)
      for (const {
        record: { status, message },
        differences,
      } of found)
        assert.deepEqual([status, message, differences], ['complete', undefined, []])
    })
  }
})

describe('whatever hooks do, a replay with the same hooks decides the same', () => {
  for (const name of Object.keys(shadowWorlds)) {
    test(`in the world "${name}"`, async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(anyHook, { minLength: 1, maxLength: 3 }), async (specs) => {
          const hooks = specs.map((spec, i) => makeHook(spec, `other ${i}`))
          const recorded = await record(name, hooks).catch((error: AgentError) => {
            if (['RESUME_NOT_SUSPENDED', 'ANSWER_UNKNOWN'].includes(error.code)) return undefined // hooks have ended it, or ask
            throw error
          })
          for (const {
            record: { status, message },
          } of (await recorded?.reports()) ?? [])
            assert.deepEqual([status, message], ['complete', undefined])
        }),
        { numRuns: Number(process.env['HOOKLOOP_TEST_RUNS'] ?? 20) },
      )
    })
  }
})

describe('a replay reports what happens when the hooks are really in force', () => {
  for (const name of [
    'plain',
    'streamed',
    'asked',
    'attempts',
    'errors',
    'brokenHooks',
    'stopped',
    'refused',
    'broken',
    'unusable',
  ]) {
    test(`in the world "${name}"`, async () => {
      const was = await record(name)
      await fc.assert(
        fc.asyncProperty(fc.array(anyHook, { minLength: 1, maxLength: 3 }), async (specs) => {
          const hooks = (): Hook[] => specs.map((spec, i) => makeHook(spec, `other ${i}`))
          const [report] = await was.reports(hooks())
          const is = await shadowWorlds[name]!(hooks())
          assert.equal(report!.record.status, 'complete')
          checkAgainst(report!, was.played, is)
        }),
        { numRuns: Number(process.env['HOOKLOOP_TEST_RUNS'] ?? 30) },
      )
    })
  }
})

/** After which the record has no answer, and yet the answer may turn out to be the same. */
const unsure: ReadonlySet<string> = new Set([
  'the model would get a different request',
  'the model would get a different conversation',
  'the call would wait for approval',
  'an approver would be asked',
  'no approver would be asked',
  'the call would have different arguments',
  'the error would be handled differently',
])

/** What is said to stay the same did, and what is said to be otherwise was. */
function checkAgainst(report: ReplayReport, was: Played, is: Played): void {
  const { divergesAt, differences } = report
  const [before, after] = [wayOf(was.runs[0]!), wayOf(is.runs[0]!)]
  if (divergesAt === undefined) {
    assert.deepEqual(after, before, `${formatReplay(report)}\n${diffText(before, after)}`)
    return
  }
  if (!unsure.has(divergesAt.why)) assert.notDeepEqual(after, before, formatReplay(report))
  // Up to where they part, both went the same way.
  const same = divergesAt.step
  assert.deepEqual(after.steps.slice(0, same), before.steps.slice(0, same))
  // And what is said of the event where they part is in the ledger of the run with the hooks.
  const placeOf = ({ step, trigger, call }: ReplayPlace): unknown => JSON.stringify([step, trigger, call?.id])
  const { would = [] } = differences.find((each) => placeOf(each) === placeOf(divergesAt)) ?? {}
  for (const by of would.map((each) => each.hook).filter((each) => each.startsWith('other'))) {
    const entry = is.runs[0]!.ledger.find(
      ({ hook: name, step, trigger }) => name === by && step === divergesAt.step && trigger === divergesAt.trigger,
    )
    assert.notEqual(entry?.decision ?? entry?.error ?? entry?.changes, undefined)
  }
}

/** The way a run took: what was said and done in it, without when, and without what only hooks know. */
function wayOf({ state, status }: Run): { readonly steps: readonly unknown[] } & Record<string, unknown> {
  const { execution, messages } = state
  const { final } = execution ?? {}
  return {
    status,
    reason: final?.reason,
    steps: execution?.steps.map(stepOf) ?? [],
    // What a hook has added and no model was shown is a difference in the state, and no other way.
    messages: messages.filter(({ content: [first] }) => first?.type !== 'text' || first.text !== 'added'),
  }
}

/** A step, without the arguments of calls that were not made. */
function stepOf({ toolCalls, toolExecutions, text, type }: Step): unknown {
  const calls = toolCalls.map(({ name, args }, i) => (toolExecutions[i]?.status === 'ok' ? { name, args } : { name }))
  return { calls, toolExecutions, text, type }
}

function diffText(a: object, b: object): string {
  const [before, after] = [a, b].map((each) => JSON.stringify(each, undefined, 1).split('\n'))
  return after!.filter((line) => !before!.includes(line)).join('\n')
}

type Deciding = { readonly [method: string]: (...args: unknown[]) => unknown }
type Seen = { readonly state: Run['state'] }

/** Whatever a context can do. */
const deeds: { readonly [name: string]: (ctx: Deciding) => unknown } = {
  nothing: (ctx) => ctx,
  stop: (ctx) => ctx['stop']?.('Stop.') ?? ctx,
  block: (ctx) => ctx['block']?.('Block.') ?? ctx,
  ask: (ctx) => ctx['ask']?.('Ask?') ?? ctx,
  allow: (ctx) => ctx['allow']?.('Allow.') ?? ctx,
  request: (ctx) => ctx['requestContinuation']?.('More.') ?? ctx,
  allowStop: (ctx) => ctx['allowStop']?.('Enough.') ?? ctx,
  retry: (ctx) => ctx['retry']?.() ?? ctx,
  ignore: (ctx) => ctx['ignore']?.() ?? ctx,
  args: (ctx) => ctx['withArgs']?.({ n: 99 }) ?? ctx,
  badArgs: (ctx) => ctx['withArgs']?.({ n: 'none' }) ?? ctx,
  output: (ctx) => ctx['withOutput']?.('changed') ?? ctx,
  system: (ctx) => ctx['withRequest']?.({ system: 'changed' }) ?? ctx,
  response: (ctx) => ctx['withResponse']?.({ text: 'changed' }) ?? ctx,
  input: (ctx) => ctx['withInput']?.('done') ?? ctx,
  message: (ctx) => ctx['withState']?.((state: Run['state']) => state.withMessage('added')) ?? ctx,
  prompt: (ctx) => ctx['withState']?.((state: Run['state']) => state.withSystemPrompt('changed')) ?? ctx,
  count: (ctx) => ctx['withState']?.(counting) ?? ctx,
  stopCounted: (ctx) => (counted(ctx as unknown as Seen) > 2 ? (ctx['stop']?.('Counted.') ?? ctx) : ctx),
  blockCounted: (ctx) => (counted(ctx as unknown as Seen) > 1 ? (ctx['block']?.('Counted.') ?? ctx) : ctx),
  mute: () => undefined,
  broken: () => {
    throw new Error('broken')
  },
}

/** Hooks that count in the state, and hooks that act on the count: the second know only what the first would have put there. */
function counting(state: Run['state']): Run['state'] {
  return state.withMetadata('count', counted({ state }) + 1)
}

function counted({ state }: Seen): number {
  return Number(state.metadata['count'] ?? 0)
}

const anyHook = fc.record({
  isGuard: fc.boolean(),
  triggers: fc.subarray(guardTriggers, { minLength: 1, maxLength: 3 }),
  deed: fc.constantFrom(...Object.keys(deeds)),
  priority: fc.integer({ min: -50, max: 50 }),
  isSlow: fc.boolean(),
  from: fc.integer({ min: 0, max: 2 }),
  onFailure: fc.constantFrom(undefined, 'block', 'continue'),
})

type Spec = typeof anyHook extends fc.Arbitrary<infer S> ? S : never

function makeHook({ isGuard, triggers, deed, priority, isSlow, from, onFailure }: Spec, name: string): Hook {
  const act = deeds[deed]!
  const handler = (isSlow ? async (ctx: Deciding) => act(ctx) : act) as never
  const options = { name, priority, when: (ctx: Seen): boolean => ctx.state.stepCount >= from }
  if (isGuard) return guard(triggers, handler, options)
  return hook(triggers, handler, { ...options, ...(onFailure !== undefined && { onFailure }) })
}
