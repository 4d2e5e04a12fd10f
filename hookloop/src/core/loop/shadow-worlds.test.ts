import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { AgentEvent } from '../state/event.ts'
import { guard, hook, shadow, type Hook } from '../hooks/hook.ts'
import { isAround, specOf, triggerNames, type GuardTrigger, type PlainTrigger } from '../hooks/triggers.ts'
import type { Run } from '../agent/run.ts'
import { look, shadowWorlds, work, type Played } from './shadow-worlds.fixture.ts'

const plainTriggers = triggerNames.filter((name): name is PlainTrigger => !isAround(name))
const guardTriggers = plainTriggers.filter((name): name is GuardTrigger => specOf(name).guard.length > 0)

describe('a shadow hook sees what the active hook would see, and as often', () => {
  for (const [name, play] of Object.entries(shadowWorlds)) {
    test(`in the world "${name}"`, async () => {
      const [inForce, inShadow]: [unknown[], unknown[]] = [[], []]
      await play(spies(inForce))
      await play(spies(inShadow).map((each) => shadow(each)))
      assert.ok(inForce.length > 0)
      assert.deepEqual(inShadow, inForce)
    })
  }
})

describe('a shadow hook changes nothing', () => {
  for (const [name, play] of Object.entries(shadowWorlds)) {
    test(`in the world "${name}": a run with any shadow hooks equals the run without them`, async () => {
      const alone = visible(await play([]))
      await fc.assert(
        fc.asyncProperty(fc.array(anyShadow, { minLength: 1, maxLength: 4 }), async (shadows) => {
          const watched = await play(shadows.map((each) => each()))
          assert.deepEqual(visible(watched), alone)
        }),
        { numRuns: Number(process.env['HOOKLOOP_TEST_RUNS'] ?? 30) },
      )
    })
  }
})

/** One hook of each mode at every trigger that records what it sees. */
function spies(seen: unknown[]): readonly Hook<PlainTrigger>[] {
  const write = <C extends object>(mode: string, ctx: C): C => {
    const { trigger, state, spent, now } = ctx as C & {
      trigger: PlainTrigger
      state: Run['state']
      spent: unknown
      now: number
    }
    const { execution, ...rest } = JSON.parse(JSON.stringify(state)) as {
      execution?: { hooks?: unknown }
    }
    const { hooks: _hooks, ...known } = execution ?? {}
    const facts = Object.fromEntries(
      specOf(trigger).carries.map((name) => [name, (ctx as Record<string, unknown>)[name]]),
    )
    const { model: _model, ...request } = (facts['request'] ?? {}) as { model?: unknown }
    seen.push(
      JSON.parse(JSON.stringify({ trigger, mode, ...facts, request, state: rest, execution: known, spent, now })),
    )
    return ctx
  }
  return [
    hook(plainTriggers, (ctx) => write('transform', ctx), { name: 'spy', priority: 5 }),
    guard(guardTriggers, (ctx) => write('guard', ctx), { name: 'guarding spy', priority: 1000 }),
  ]
}

type Deciding = { readonly [method: string]: (...args: unknown[]) => unknown }

/** All methods of the context, one after the other. */
const deeds: readonly ((ctx: Deciding) => unknown)[] = [
  (ctx) => ctx,
  (ctx) => ctx['stop']?.('Stop.') ?? ctx,
  (ctx) => ctx['block']?.('Block.') ?? ctx,
  (ctx) => ctx['ask']?.('Ask?') ?? ctx,
  (ctx) => ctx['allow']?.('Allow.') ?? ctx,
  (ctx) => ctx['requestContinuation']?.('More.') ?? ctx,
  (ctx) => ctx['allowStop']?.('Enough.') ?? ctx,
  (ctx) => ctx['retry']?.() ?? ctx,
  (ctx) => ctx['ignore']?.() ?? ctx,
  (ctx) => ctx['withArgs']?.({ n: 99 }) ?? ctx,
  (ctx) => ctx['withOutput']?.('changed') ?? ctx,
  (ctx) => ctx['withRequest']?.({ system: 'changed' }) ?? ctx,
  (ctx) => ctx['withResponse']?.({ text: 'changed' }) ?? ctx,
  (ctx) => ctx['withInput']?.('changed') ?? ctx,
  (ctx) =>
    ctx['withState']?.((state: Run['state']) => state.withMessage('changed').withMetadata('changed', true)) ?? ctx,
  (ctx) => ctx['spend']?.({ inputTokens: 1e9, costUsd: 1e9 }),
  () => undefined,
  () => {
    throw new Error('broken')
  },
]

const anyShadow = fc
  .record({
    isGuard: fc.boolean(),
    triggers: fc.subarray(guardTriggers, { minLength: 1 }),
    deed: fc.constantFrom(...deeds),
    priority: fc.integer({ min: -50, max: 50 }),
    isSlow: fc.boolean(),
    tool: fc.constantFrom(undefined, 'work', work, look),
    onFailure: fc.constantFrom(undefined, 'block', 'continue'),
    isNamed: fc.boolean(),
  })
  .map(({ isGuard, triggers, deed, priority, isSlow, tool: on, onFailure, isNamed }) => {
    const handler = (isSlow ? async (ctx: Deciding) => deed(ctx) : deed) as never
    const ofTools = on === undefined ? triggers : triggers.filter((each) => each.endsWith('ToolUse'))
    const at = ofTools.length === 0 ? (['beforeToolUse'] as const) : ofTools
    return () => {
      const options = { priority, ...(on !== undefined && { tool: on }), ...(isNamed && { name: `shadow ${++named}` }) }
      if (isGuard) return shadow(guard(at, handler, options))
      return shadow(hook(at, handler, { ...options, ...(onFailure !== undefined && { onFailure }) }))
    }
  })

let named = 0

/** Everything of a world that a caller could depend on. */
function visible({ runs, events }: Played): unknown {
  return {
    runs: runs.map((run) => [run.status, run.text, JSON.stringify(run.state), untimed(run)]),
    events: events.flatMap((event) => withoutShadows(event)),
  }
}

function withoutShadows(event: AgentEvent): readonly unknown[] {
  const { durationMs: _took, seq: _counted, ...rest } = event as AgentEvent & { durationMs?: number }
  if (event.type !== 'hook') return [rest]
  const { durationMs: _ms, ...entry } = event.entry
  return entry.shadow === true ? [] : [{ type: 'hook', entry }]
}

function untimed(run: Run): unknown {
  return run.ledger.filter((entry) => entry.shadow !== true).map(({ durationMs: _ms, ...entry }) => entry)
}
