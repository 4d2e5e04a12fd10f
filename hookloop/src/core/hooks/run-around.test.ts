import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, test } from 'node:test'
import * as z from 'zod'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { tool, type Tool } from '../agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import type { LedgerEntry } from '../state/ledger.ts'
import type { ToolExecution } from '../state/tool-call.ts'
import { noTokens } from '../state/usage.ts'
import { scriptedModel, type Script, type ScriptedModel } from '../../models/scripted.ts'
import { guard, hook } from './hook.ts'
import { replayedRun } from '../../sessions/replay/replayed-run.fixture.ts'

type Seen = { readonly run: Run; readonly model: ScriptedModel }

async function runWith(use: readonly Use[], script: Script): Promise<Seen> {
  const model = scriptedModel(script)
  return { model, run: await createAgent({ model, use }).run('go') }
}

/** A tool that counts its runs and answers with the count. */
function counter(execute?: (n: number) => unknown): { count: Tool; keys: string[] } {
  const keys: string[] = []
  const count = tool({
    name: 'count',
    description: '',
    input: z.object({}),
    execute: (_args, { idempotencyKey }) => {
      keys.push(idempotencyKey)
      return execute === undefined ? keys.length : execute(keys.length)
    },
  })
  return { count, keys }
}

const callOnce: Script = [{ toolCalls: [{ name: 'count' }] }, 'done']

async function callWith(use: readonly Use[]): Promise<ToolExecution> {
  const { run } = await runWith(use, callOnce)
  const { name: _tool, ...execution } = run.state.execution!.steps.at(0)!.toolExecutions[0]!
  return execution
}

const tryTwice = async <T>(_ctx: unknown, next: () => Promise<T>): Promise<T> => {
  try {
    return await next()
  } catch {
    return next()
  }
}
const say = (text: string) =>
  ({ content: [{ type: 'text', text }], text, usage: noTokens, finishReason: 'stop' }) as const
const entryOf = (run: Run, name: string): LedgerEntry | undefined => run.ledger.find((entry) => entry.hook === name)
const failureOf = (run: Run): [string, string] | string =>
  run.status === 'failed' ? [run.error.code, run.error.message] : run.status

describe('around the model', () => {
  test('next() called once returns the response of the model', async () => {
    const { run } = await runWith([hook('aroundInference', (_ctx, next) => next())], ['done'])
    assert.equal(run.text, 'done')
  })

  test('a hook that never calls next() substitutes the response: no model is called, and the ledger says so', async () => {
    const { run, model } = await runWith([hook('aroundInference', async () => say('cached'), { name: 'cache' })], [])
    assert.deepEqual([run.text, model.requests.length, entryOf(run, 'cache')?.decision], ['cached', 0, 'substituted'])
  })

  test('next() called again is a new attempt', async () => {
    const retry = hook('aroundInference', tryTwice, { name: 'retry' })
    const { run, model } = await runWith([retry], [{ error: 'down' }, 'done'])
    assert.deepEqual([run.text, model.requests.length, entryOf(run, 'retry')?.decision], ['done', 2, 'called 2 times'])
  })

  test('usage of every attempt is counted, also of a discarded one', async () => {
    const twice = hook('aroundInference', async (_ctx, next) => (await next(), next()))
    const { run } = await runWith([twice], ['first', 'second'])
    assert.deepEqual([run.text, run.state.usage.inputTokens], ['second', 20])
  })

  test('inner hooks and the model get the request that an around hook changed', async () => {
    const seen: string[] = []
    const outer = hook('aroundInference', (_ctx, next) => next({ system: 'A' }), { priority: 2 })
    const middle = hook('aroundInference', (ctx, next) => (seen.push(ctx.request.system), next({ tools: [] })), {
      priority: 1,
    })
    const inner = hook('aroundInference', (ctx, next) => (seen.push(ctx.request.system), next()))
    const { model } = await runWith([inner, middle, outer], ['done'])
    assert.deepEqual([seen, model.requests[0]!.system], [['A', 'A'], 'A'])
  })

  const noSecrets = guard('beforeInference', (ctx) => (/secret/.test(ctx.request.system) ? ctx.stop('secret!') : ctx), {
    name: 'noSecrets',
  })

  test('guards at beforeInference judge a request that an around hook changed', async () => {
    const leak = hook('aroundInference', (_ctx, next) => next({ system: 'secret' }))
    const { run, model } = await runWith([noSecrets, leak], ['done'])
    assert.deepEqual([run.status, run.final?.by, model.requests.length], ['stopped', 'noSecrets', 0])
  })

  test('a forbid of a changed request stays: no model call starts after it', async () => {
    const stubborn = hook('aroundInference', async (_ctx, next) => {
      try {
        return await next({ system: 'secret' })
      } catch {
        return next()
      }
    })
    const { run, model } = await runWith([noSecrets, stubborn], ['done'])
    assert.deepEqual([run.status, model.requests.length], ['stopped', 0])
  })

  const misuses: { readonly [what: string]: [RegExp, Parameters<typeof hook<'aroundInference'>>[1]] } = {
    'a forgotten return': [
      /called next\(\) but did not return its result/,
      (async (_ctx: unknown, next: () => Promise<unknown>) => void (await next())) as never,
    ],
    'a forgotten call': [/neither called next\(\) nor returned a result/, (async () => undefined) as never],
    'a result of another kind': [/returned "done", which is not a result/, (async () => 'done') as never],
    'a context in place of a result': [
      /returned its context\. Return the result of next\(\)\.$/,
      (async (ctx: unknown) => ctx) as never,
    ],
  }
  for (const [what, [words, handler]] of Object.entries(misuses)) {
    test(`${what} fails with an explanation`, async () => {
      const { run } = await runWith([hook('aroundInference', handler, { name: 'careless' })], ['done'])
      const [code, message] = failureOf(run)
      assert.equal(code, 'HOOK_NEXT_MISUSED')
      assert.match(message!, /^Hook "careless" failed at aroundInference: It /)
      assert.match(message!, words)
    })
  }

  test('next() called after the hook returned fails with an explanation, and calls nothing', async () => {
    let late: Promise<unknown> | undefined
    const hasty = hook('aroundInference', async (_ctx, next) => {
      const callLate = async (): Promise<unknown> => (await delay(5), next())
      late = assert.rejects(callLate, { code: 'HOOK_NEXT_MISUSED', message: /called next\(\) after it had returned/ })
      return say('early')
    })
    const { run, model } = await runWith([hasty], ['late'])
    await late
    assert.deepEqual([run.text, model.requests.length], ['early', 0])
  })
})

describe('around a tool', () => {
  test('hooks are nested by priority, the highest outermost, ties in order of registration', async () => {
    const log: string[] = []
    const layer = (name: string, priority: number): Use =>
      hook(
        'aroundToolUse',
        async (_ctx, next) => {
          log.push(name)
          const result = await next()
          log.push(`/${name}`)
          return result
        },
        { name, priority },
      )
    await callWith([
      counter(() => log.push('tool')).count,
      layer('low', -1),
      layer('a', 0),
      layer('b', 0),
      layer('high', 9),
    ])
    assert.deepEqual(log, ['high', 'a', 'b', 'low', 'tool', '/low', '/b', '/a', '/high'])
  })

  test('a hook that never calls next() substitutes the result: the tool does not run', async () => {
    const { count, keys } = counter()
    const execution = await callWith([count, hook('aroundToolUse', async () => ({ status: 'ok', output: 'cached' }))])
    assert.deepEqual([execution, keys.length], [{ status: 'ok', output: 'cached' }, 0])
  })

  test('next() called twice runs the tool twice, with the same idempotency key', async () => {
    const { count, keys } = counter()
    const execution = await callWith([count, hook('aroundToolUse', async (_ctx, next) => (await next(), next()))])
    assert.deepEqual([execution.output, keys.length, new Set(keys).size], [2, 2, 1])
  })

  test('a wrapped call is replayed as one effect: neither the hook nor the tool runs again', async () => {
    const { count, keys } = counter()
    let wrapped = 0
    const twice = hook('aroundToolUse', async (_ctx, next) => (wrapped++, await next(), next()), { name: 'twice' })
    const agent = createAgent({ model: scriptedModel(callOnce), use: [count, twice] })
    const run = await replayedRun(agent, 'go')
    assert.deepEqual([wrapped, keys.length, entryOf(run, 'twice')?.decision], [1, 2, 'called 2 times'])
  })

  test('a throw before next() fails the call, with a message to the model', async () => {
    const { count, keys } = counter()
    const offline = hook('aroundToolUse', () => Promise.reject(new Error('no network')), { name: 'offline' })
    const execution = await callWith([count, offline])
    const output = 'Hook "offline" failed at aroundToolUse: no network'
    assert.deepEqual([execution, keys.length], [{ status: 'failed', output }, 0])
  })

  test('a hook that returns an execution without an output, or with an unknown status, fails the call', async () => {
    for (const returned of [{ status: 'ok' }, { status: 'fine', output: 'x' }, { output: 'x' }, 'x']) {
      const { count } = counter()
      const { status } = await callWith([count, hook('aroundToolUse', async () => returned as ToolExecution)])
      assert.equal(status, 'failed', JSON.stringify(returned))
    }
  })

  test('a hook that returns its context fails the call, and the message says what to return', async () => {
    const careless = hook('aroundToolUse', (async (ctx: unknown) => ctx) as never, { name: 'careless' })
    const output = 'Hook "careless" failed at aroundToolUse: It returned its context. Return the result of next().'
    assert.deepEqual(await callWith([counter().count, careless]), { status: 'failed', output })
  })

  const throwsLate = hook('aroundToolUse', async (_ctx, next) => {
    await next()
    throw new Error('oops')
  })

  test('a throw after a successful next() leaves the call done, with its result withheld', async () => {
    const { status, withheld, by, output } = await callWith([counter(() => 'secret').count, throwsLate])
    assert.deepEqual([status, withheld, by, /secret/.test(JSON.stringify(output))], ['ok', true, 'hookloop', false])
  })

  test('a missing return after the tool ran leaves the call done, with its result withheld', async () => {
    const careless = hook(
      'aroundToolUse',
      (async (_ctx: unknown, next: () => Promise<unknown>) => void (await next())) as never,
    )
    const { status, withheld, output } = await callWith([counter().count, careless])
    assert.deepEqual([status, withheld, /did not return its result/.test(JSON.stringify(output))], ['ok', true, true])
  })

  test('a call that was running when its hook failed is not reported as failed', async () => {
    const done: string[] = []
    const { count } = counter(() => delay(20).then(() => done.push('done')))
    const impatient = hook('aroundToolUse', (_ctx, next) => next(), { timeoutMs: 5 })
    const { status } = await callWith([count, impatient])
    await delay(25)
    assert.deepEqual([done, status === 'failed'], [['done'], false])
  })
})

describe('when, timeoutMs and onFailure', () => {
  test('a hook whose "when" is false is skipped, and is not in the ledger', async () => {
    const never = hook('aroundInference', async () => say('mine'), { when: () => false, name: 'never' })
    const { run } = await runWith([never], ['done'])
    assert.deepEqual([run.text, entryOf(run, 'never')], ['done', undefined])
  })

  test('a hook that times out fails', async () => {
    const slow = hook('aroundInference', () => new Promise<never>(() => undefined), { timeoutMs: 5 })
    const { run } = await runWith([slow], ['done'])
    assert.equal(failureOf(run)[0], 'HOOK_TIMED_OUT')
  })

  test('with onFailure continue the call is made without the hook, and the ledger has the error', async () => {
    const broken = hook('aroundInference', () => Promise.reject(new Error('oops')), {
      onFailure: 'continue',
      name: 'broken',
    })
    const { run, model } = await runWith([broken], ['done'])
    assert.deepEqual([run.text, model.requests.length, entryOf(run, 'broken')?.error], ['done', 1, 'oops'])
  })

  test('with onFailure continue a call that was made is not made again', async () => {
    const { count, keys } = counter()
    const late = hook('aroundToolUse', async (_ctx, next) => (await next(), Promise.reject(new Error('oops'))), {
      onFailure: 'continue',
    })
    const { status, withheld } = await callWith([count, late])
    assert.deepEqual([keys.length, status, withheld], [1, 'ok', true])
  })

  test('a hook that was skipped after a timeout cannot make the call a second time', async () => {
    const { count, keys } = counter(() => delay(30))
    const slow = hook('aroundToolUse', async (_ctx, next) => (await delay(15), next()), {
      timeoutMs: 5,
      onFailure: 'continue',
    })
    await callWith([count, slow])
    assert.equal(keys.length, 1)
  })
})
