import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Agent } from '../core/agent/agent.ts'
import type { Use } from '../core/agent/capability.ts'
import { explain } from '../core/explain/explain.ts'
import { explanation } from '../core/explain/explanation.ts'
import type { Run } from '../core/agent/run.ts'
import { createAgent } from '../create-agent.ts'
import { AgentError, errorCodes, type ErrorCode } from '../errors.ts'
import { guard, hook } from '../core/hooks/hook.ts'
import { scriptedModel, type ScriptedModel, type ScriptedTurn } from '../models/scripted.ts'
import { recordDelays } from '../system/record-delays.fixture.ts'
import { errorPolicy } from './error-policy.ts'
import { startedTimers } from '../system/started-timers.fixture.ts'
import { retryableErrorCodes, retry } from './retry.ts'

/** Waits that are too short to matter. */
const quick = { backoffMs: 1, maxBackoffMs: 2 }
const long = 20_000

function failing(code: ErrorCode = 'MODEL_OVERLOADED', message = 'busy', value?: object): ScriptedTurn {
  return { error: new AgentError(code, message, { value }) }
}

function agentOn(model: ScriptedModel, ...use: readonly Use[]): Agent {
  return createAgent({ model, use })
}

function errorOf(run: Run): AgentError {
  assert.ok(run.status === 'failed', `the run is ${run.status}`)
  return run.error
}

// ── what is retried

test('a call that failed with a code of retryableErrorCodes is retried, and no other', async () => {
  for (const code of (Object.keys(errorCodes) as ErrorCode[]).filter((each) => !/^(REPLAY_|RECORDING_)/.test(each))) {
    const model = scriptedModel([failing(code), 'Done.'])
    const run = await agentOn(model, retry(quick)).run('go')
    const isRetried = (retryableErrorCodes as readonly string[]).includes(code)
    assert.deepEqual([run.status, model.requests.length], isRetried ? ['completed', 2] : ['failed', 1], code)
  }
})

test('with "on", only those codes are retried', async () => {
  const only = retry({ ...quick, on: ['MODEL_REJECTED'] })
  const rejected = await agentOn(scriptedModel([failing('MODEL_REJECTED'), 'Done.']), only).run('go')
  const overloaded = await agentOn(scriptedModel([failing(), 'Done.']), only).run('go')
  assert.deepEqual([rejected.text, errorOf(overloaded).code], ['Done.', 'MODEL_OVERLOADED'])
})

test('a call is repeated at most maxRetries times, by default twice, and the last failure is reported', async () => {
  for (const maxRetries of [undefined, 0, 4]) {
    const model = scriptedModel(Array.from({ length: 9 }, (_, i) => failing('MODEL_OVERLOADED', `busy ${i + 1}`)))
    const run = await agentOn(model, retry({ ...quick, ...(maxRetries !== undefined && { maxRetries }) })).run('go')
    const calls = (maxRetries ?? 2) + 1
    assert.deepEqual([errorOf(run).message, model.requests.length], [`busy ${calls}`, calls])
  }
})

test('onError fires after the last attempt, and its retry has as many attempts again', async () => {
  const model = scriptedModel([failing(), failing(), failing(), 'Done.'])
  let heard = 0
  const listen = hook('onError', (ctx) => (heard++, ctx))
  const run = await agentOn(model, listen, errorPolicy({ backoffMs: 0 }), retry({ ...quick, maxRetries: 1 })).run('go')
  assert.deepEqual([run.status, heard, model.requests.length], ['completed', 1, 4])
})

// ── waits

test('the wait that the provider asks for is used', async (t) => {
  const delays = recordDelays(t)
  const model = scriptedModel([failing('MODEL_RATE_LIMITED', 'slow down', { retryAfterMs: 80 }), 'Done.'])
  await agentOn(model, retry({ backoffMs: 0 })).run('go')
  assert.deepEqual([delays, model.requests.length], [[80], 2])
})

test('a wait longer than maxRetryAfterMs fails the call at once', async () => {
  const asked = (ms: number) =>
    scriptedModel([failing('MODEL_RATE_LIMITED', 'slow down', { retryAfterMs: ms }), 'Done.'])
  const signal = AbortSignal.timeout(120_000)
  const patient = await agentOn(asked(50), retry({ maxRetryAfterMs: 50 })).run('go', { signal })
  const hasty = await agentOn(asked(50), retry({ maxRetryAfterMs: 49 })).run('go', { signal })
  const usual = await agentOn(asked(60_001), retry()).run('go', { signal })
  assert.deepEqual([patient.status, hasty.status, usual.status], ['completed', 'failed', 'failed'])
})

test('waits double up to maxBackoffMs', async (t) => {
  const delays = recordDelays(t)
  const model = scriptedModel(() => failing())
  await agentOn(model, retry({ maxRetries: 4, backoffMs: 20, maxBackoffMs: 60 })).run('go')
  const longest = [20, 40, 60, 60] // jitter takes away at most half
  assert.equal(delays.length, longest.length)
  assert.ok(
    delays.every((ms, i) => ms >= longest[i]! / 2 && ms <= longest[i]!),
    delays.join(' '),
  )
  const capped = agentOn(model, retry({ backoffMs: long, maxBackoffMs: 1 }))
  assert.equal((await capped.run('go', { signal: AbortSignal.timeout(120_000) })).status, 'failed')
})

// ── cancellation and guards

test('a cancellation during the wait ends the run at once', async () => {
  const cancel = new AbortController()
  const model = scriptedModel(() => (setImmediate(() => cancel.abort()), failing()))
  const agent = agentOn(model, retry({ backoffMs: 50_000, maxBackoffMs: 50_000 }))
  let status: string | undefined
  const left = await startedTimers(async () => ({ status } = await agent.run('go', { signal: cancel.signal })))
  assert.deepEqual([status, model.requests.length, left()], ['cancelled', 1, 0])
})

test('guards judge every attempt, and one that forbids it ends the retries, whatever "on" says', async () => {
  let judged = 0
  const twice = guard('beforeInference', (ctx) => (++judged > 2 ? ctx.stop('Enough.') : ctx), { name: 'twice' })
  const model = scriptedModel(() => failing())
  const on = ['MODEL_OVERLOADED', 'MODEL_FAILED'] as const
  const run = await agentOn(model, twice, retry({ ...quick, maxRetries: 8, on })).run('go')
  assert.deepEqual([run.status, run.status === 'stopped' && run.by], ['stopped', 'twice'])
  assert.deepEqual([judged, model.requests.length], [3, 2])
})

// ── usage, ledger and replay

/** Rejects a response the first time, like a hook that cannot parse it. */
function unreadableOnce(): Use {
  let times = 0
  return hook('aroundInference', async (_ctx, next) => {
    const response = await next()
    if (times++ === 0) throw new AgentError('MODEL_REPLY_INVALID', 'unreadable')
    return response
  })
}

test('the cost of every attempt is counted', async () => {
  const model = scriptedModel(['First.', 'Second.'], { usage: { costUsd: 0.25 } })
  const run = await agentOn(model, unreadableOnce(), retry(quick)).run('go')
  const { inputTokens, outputTokens, costUsd, steps } = run.state.usage
  assert.deepEqual([run.text, inputTokens, outputTokens, costUsd, steps], ['Second.', 20, 10, 0.5, 1])
})

test('the ledger and explain have every failed attempt', async () => {
  const model = scriptedModel([failing('MODEL_OVERLOADED', 'busy'), failing('MODEL_TIMED_OUT', 'late'), 'Done.'])
  const run = await agentOn(model, retry(quick)).run('go')
  const reported = ['attempt 1, scripted/script: busy', 'attempt 2, scripted/script: late']
  const entries = run.ledger.filter((entry) => entry.mode === 'loop' && entry.decision === 'failed')
  assert.deepEqual(
    entries.map(({ step, trigger, message }) => [step, trigger, message]),
    reported.map((message) => [0, 'aroundInference', message]),
  )
  assert.deepEqual(
    explanation(run).failedAttempts.map(({ message }) => message),
    reported,
  )
  assert.match(explain(run), /attempts +step 1: scripted\/script: busy\n +step 1: scripted\/script: late/)
  assert.equal(run.ledger.find((entry) => entry.hook === 'retry')?.decision, 'called 3 times')
})
