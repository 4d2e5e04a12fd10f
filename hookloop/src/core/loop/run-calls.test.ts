import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { createAgent } from '../../create-agent.ts'
import type { ToolExecution } from '../state/tool-call.ts'
import { guard, hook, observe } from '../hooks/hook.ts'
import { scriptedModel, type ScriptedCall } from '../../models/scripted.ts'
import { recordEvents } from '../../testing/record-events.ts'
import type { AgentOptions } from '../../create-agent.ts'
import type { Run } from '../agent/run.ts'
import { guards } from '../../capabilities/guards.ts'
import { startedTimers } from '../../system/started-timers.fixture.ts'
import { tool, type ToolRun } from '../agent/tool.ts'

type Given = Omit<AgentOptions<never>, 'model'> & { readonly signal?: AbortSignal }

/** A run of one step with these calls and one with the answer. */
async function useAll(toolCalls: readonly ScriptedCall[], { signal, ...options }: Given): Promise<Run> {
  const agent = createAgent({ model: scriptedModel([{ toolCalls }, 'Done.']), ...options })
  return agent.run('Go.', signal && { signal })
}

function executions(run: Run): readonly ToolExecution[] {
  return run.state.execution!.steps.at(0)!.toolExecutions
}

const statuses = (run: Run): readonly string[] => executions(run).map(({ status }) => status)
const anything = { type: 'object' }
const numbered = z.object({ n: z.number() })

/** A tool that records its start and end, with a turn of the event loop between. */
function slow(name: string, log: string[], options: { concurrent?: boolean } = {}) {
  const execute = async ({ n }: { n: number }): Promise<string> => {
    log.push(`begin ${n}`)
    await delay(1)
    log.push(`end ${n}`)
    return `ran ${n}`
  }
  return tool({ name, description: 'Takes a moment.', input: numbered, execute, ...options })
}

const numbers = (name: string, count: number): ScriptedCall[] =>
  Array.from({ length: count }, (_, n) => ({ name, args: { n } }))

/** Hooks that record when a call is about to run and when it has ended. */
function noting(log: string[]) {
  return [
    guard('beforeToolUse', (ctx) => (log.push(`before ${JSON.stringify(ctx.toolCall.args['n'])}`), ctx)),
    hook('afterToolUse', (ctx) => (log.push(`after ${JSON.stringify(ctx.toolCall.args['n'])}`), ctx)),
  ]
}

test('calls of one step run in order, each from beforeToolUse to afterToolUse', async () => {
  const log: string[] = []
  await useAll(numbers('write', 2), { use: [slow('write', log), ...noting(log)] })
  assert.deepEqual(log, ['before 0', 'begin 0', 'end 0', 'after 0', 'before 1', 'begin 1', 'end 1', 'after 1'])
})

test('adjacent concurrent calls run together: all beforeToolUse, all tools, all afterToolUse, in call order', async () => {
  const log: string[] = []
  await useAll(numbers('read', 3), { use: [slow('read', log, { concurrent: true }), ...noting(log)] })
  const ends = ['end 0', 'end 1', 'end 2']
  assert.deepEqual(
    log.filter((entry) => !ends.includes(entry)),
    ['before 0', 'before 1', 'before 2', 'begin 0', 'begin 1', 'begin 2', 'after 0', 'after 1', 'after 2'],
  )
  assert.deepEqual(log.slice(6, 9).toSorted(), ends)
})

test('a tool without "concurrent" runs alone, also between concurrent tools', async () => {
  const log: string[] = []
  const calls = ['read', 'read', 'write', 'read', 'read'].map((name, n) => ({ name, args: { n } }))
  await useAll(calls, { use: [slow('read', log, { concurrent: true }), slow('write', log)] })
  const begins = (n: number): number => log.indexOf(`begin ${n}`)
  const ended = (n: number): number => log.indexOf(`end ${n}`)
  assert.ok(begins(1) < ended(0), 'the first two run together')
  assert.ok(Math.max(ended(0), ended(1)) < begins(2) && ended(2) < begins(3), 'the third runs alone')
  assert.ok(begins(4) < ended(3), 'the last two run together')
})

test('results are in the order of the calls, whichever ended first', async () => {
  const execute = async ({ n }: { n: number }): Promise<number> => (await delay(20 - 5 * n), n)
  const read = tool({ name: 'read', description: 'Reads.', input: numbered, execute, concurrent: true })
  const run = await useAll(numbers('read', 4), { use: [read] })
  assert.deepEqual(
    executions(run).map(({ output }) => output),
    [0, 1, 2, 3],
  )
})

test('at most maxConcurrentTools tools run at once', async () => {
  let [now, most] = [0, 0]
  const execute = async (): Promise<void> => {
    most = Math.max(most, ++now)
    await delay(1)
    now--
  }
  const read = tool({ name: 'read', description: 'Reads.', input: anything, execute, concurrent: true })
  const run = await useAll(numbers('read', 12), { use: [read], maxConcurrentTools: 3 })
  assert.deepEqual([most, statuses(run).filter((status) => status === 'ok').length], [3, 12])
})

test('a forbid before one call of a batch executes none of them, and each result names the hook', async () => {
  const log: string[] = []
  const stopper = guard('beforeToolUse', (ctx) => (ctx.toolCall.args.n === 1 ? ctx.stop('enough') : ctx), {
    name: 'stopper',
    tool: slow('read', log, { concurrent: true }),
  })
  const run = await useAll(numbers('read', 3), { use: [slow('read', log, { concurrent: true }), stopper] })
  assert.deepEqual([run.status, log, statuses(run)], ['stopped', [], ['blocked', 'blocked', 'blocked']])
  assert.ok(executions(run).every(({ by }) => by === 'stopper'))
  assert.match(executions(run)[2]!.output as string, /stopped by "stopper": enough/)
})

test('a forbid before a call keeps earlier results and executes nothing after it', async () => {
  const log: string[] = []
  const stopper = guard('beforeToolUse', (ctx) => (ctx.toolCall.args['n'] === 1 ? ctx.stop('enough') : ctx))
  const run = await useAll(numbers('write', 3), { use: [slow('write', log), stopper] })
  assert.deepEqual(
    [log, statuses(run)],
    [
      ['begin 0', 'end 0'],
      ['ok', 'blocked', 'blocked'],
    ],
  )
})

test('a cancel while a guard judges executes nothing: calls that did not start are blocked', async () => {
  const log: string[] = []
  const cancel = new AbortController()
  const thinking = guard('beforeToolUse', async (ctx) => (await delay(1), cancel.abort(), ctx))
  const run = await useAll(numbers('write', 2), { use: [slow('write', log), thinking], signal: cancel.signal })
  assert.deepEqual([run.status, log, statuses(run)], ['cancelled', [], ['blocked', 'blocked']])
})

test('a cancelled run leaves no timer that keeps the process alive', async () => {
  const cancel = new AbortController()
  const thinking = guard('beforeToolUse', async (ctx) => (await delay(1), cancel.abort(), await delay(1), ctx))
  const options = { use: [slow('write', []), thinking, guards({ maxTimeMs: 50_000 })], signal: cancel.signal }
  let status: string | undefined
  const left = await startedTimers(async () => ({ status } = await useAll(numbers('write', 1), options)))
  assert.deepEqual([status, left()], ['cancelled', 0])
})

test('a cancel while some calls of a batch run starts no others', async () => {
  const cancel = new AbortController()
  const begun: number[] = []
  const execute = async ({ n }: { n: number }): Promise<void> => {
    begun.push(n)
    await delay(1)
    cancel.abort()
  }
  const read = tool({ name: 'read', description: 'Reads.', input: numbered, execute, concurrent: true })
  const options = { use: [read], maxConcurrentTools: 1, signal: cancel.signal }
  const run = await useAll(numbers('read', 3), options)
  assert.deepEqual([run.status, begun, statuses(run).slice(1)], ['cancelled', [0], ['blocked', 'blocked']])
})

test('a cancel aborts the signal of a tool, and the outcome of the call is unknown', async () => {
  const cancel = new AbortController()
  const execute = (_: unknown, { signal }: ToolRun): Promise<never> =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('aborted')))
      cancel.abort()
    })
  const wait = tool({ name: 'wait', description: 'Waits.', input: anything, execute })
  const run = await useAll([{ name: 'wait' }, { name: 'wait' }], { use: [wait], signal: cancel.signal })
  assert.deepEqual([run.status, statuses(run)], ['cancelled', ['outcomeUnknown', 'blocked']])
})

const untilTold = (_: unknown, { signal }: ToolRun): Promise<string> =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))

test('a tool that times out is aborted, and the model gets the message', async () => {
  const keepAlive = setTimeout(() => undefined, 4000)
  const wait = tool({ name: 'wait', description: 'Waits.', input: anything, execute: untilTold, timeoutMs: 5 })
  const run = await useAll([{ name: 'wait' }], { use: [wait] })
  clearTimeout(keepAlive)
  const [execution] = executions(run)
  assert.deepEqual([run.status, execution!.status], ['completed', 'failed'])
  assert.match(execution!.output as string, /did not end within 5 ms/)
})

test('the timeout of a tool keeps the process alive until it fires', async () => {
  const url = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href)
  const script = `
    const { createAgent } = await import(${url('../../create-agent.ts')})
    const { scriptedModel } = await import(${url('../../models/scripted.ts')})
    const { tool } = await import(${url('../agent/tool.ts')})
    const execute = ${untilTold.toString()}
    const wait = tool({ name: 'wait', description: 'Waits.', input: { type: 'object' }, execute, timeoutMs: 5 })
    const model = scriptedModel([{ toolCalls: [{ name: 'wait' }] }, 'Done.'])
    console.log((await createAgent({ model, use: [wait] }).run('Go.')).status)`
  const child = spawn(process.execPath, ['--conditions=hookloop-source', '--input-type=module', '-e', script])
  let printed = ''
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  await once(child, 'close')
  assert.equal(printed.trim(), 'completed')
})

test('the idempotency key is the same for every attempt of a call, and differs between calls', async () => {
  const keys: string[] = []
  const execute = (_: unknown, { idempotencyKey }: ToolRun): void => {
    keys.push(idempotencyKey)
    if (keys.length % 3 !== 0) throw new Error('try again')
  }
  const pay = tool({ name: 'pay', description: 'Pays.', input: anything, execute })
  const patient = hook('aroundToolUse', async (_ctx, next) => {
    for (;;) {
      const execution = await next()
      if (execution.status === 'ok') return execution
    }
  })
  const run = await useAll([{ name: 'pay' }, { name: 'pay' }], { use: [pay, patient] })
  assert.deepEqual(statuses(run), ['ok', 'ok'])
  assert.deepEqual(new Set(keys.slice(0, 3)).size, 1)
  assert.deepEqual([new Set(keys).size, keys.length], [2, 6])
})

test('progress is reported as events, between the start and the end of its call', async () => {
  const execute = async (_: unknown, run: ToolRun): Promise<void> => {
    run.progress({ done: 1, of: 2 })
    await delay(1)
    run.progress('nearly')
  }
  const copy = tool({ name: 'copy', description: 'Copies.', input: anything, execute })
  const model = scriptedModel([{ toolCalls: [{ name: 'copy', id: 'c1' }] }, 'Done.'])
  const recorded = await recordEvents(createAgent({ model, use: [copy] }).stream('Go.'))
  assert.deepEqual(
    recorded.of('toolProgress').map(({ callId, update }) => [callId, update]),
    [
      ['c1', { done: 1, of: 2 }],
      ['c1', 'nearly'],
    ],
  )
  assert.deepEqual(
    recorded.types.filter((type) => type.startsWith('tool')),
    ['toolCallDelta', 'toolStarted', 'toolProgress', 'toolProgress', 'toolFinished'],
  )
})

for (const how of ['run', 'stream'] as const) {
  test(`invalid progress does not fail the tool that reports it (${how})`, async () => {
    const circular: { self?: unknown } = {}
    circular.self = circular
    const execute = (_: unknown, run: ToolRun): string => (run.progress(circular), run.progress(1n), 'copied')
    const copy = tool({ name: 'copy', description: 'Copies.', input: anything, execute })
    const agent = createAgent({ model: scriptedModel([{ toolCalls: [{ name: 'copy' }] }, 'Done.']), use: [copy] })
    const run = await (how === 'run' ? agent.run('Go.') : agent.stream('Go.').run)
    assert.deepEqual(executions(run), [{ name: 'copy', status: 'ok', output: 'copied' }])
  })
}

test('arguments are read-only, for hooks and for the tool', async () => {
  const input = z.object({ list: z.array(z.object({ n: z.number() })) })
  const writes: boolean[] = []
  const tamper = (args: unknown): void => {
    const { list } = args as { list: { n: number }[] }
    writes.push(Reflect.set(list[0]!, 'n', 9), Reflect.set(list, 1, {}), Reflect.set(args as object, 'list', []))
  }
  const note = tool({ name: 'note', description: 'Notes.', input, execute: tamper })
  const use = [
    note,
    hook('beforeToolUse', (ctx) => (tamper(ctx.toolCall.args), ctx)),
    guard('beforeToolUse', (ctx) => (tamper(ctx.toolCall.args), ctx)),
    hook('aroundToolUse', (ctx, next) => (tamper(ctx.toolCall.args), next())),
    observe('beforeToolUse', (ctx) => tamper(ctx.toolCall.args)),
    hook('afterToolUse', (ctx) => (tamper(ctx.toolCall.args), ctx)),
  ]
  const run = await useAll([{ name: 'note', args: { list: [{ n: 1 }] } }], { use })
  assert.deepEqual([statuses(run), writes.length, new Set(writes)], [['ok'], 18, new Set([false])])
})

const moment = z.iso.datetime().transform((text) => new Date(text))
const lookup = z.string().transform((key) => new Map([[key, { deep: [1] }]]))
const unfreezable = {
  'at the top': z.object({ at: moment, map: lookup }),
  'in what a schema froze itself': z.object({ at: moment, map: lookup }).readonly(),
}

for (const [where, input] of Object.entries(unfreezable)) {
  test(`guards get copies of values that cannot be frozen ${where}, so that the tool gets what they judged`, async () => {
    type Parsed = z.infer<(typeof unfreezable)['at the top']>
    const seen: unknown[] = []
    const spoil = (args: unknown): void => {
      const { at, map } = args as Parsed
      seen.push({ at: new Date(at), map: structuredClone(map) })
      at.setTime(0)
      map.get('k')?.deep.push(2)
      map.clear()
    }
    const note = tool({ name: 'note', description: 'Notes.', input, execute: spoil })
    const use = [
      note,
      guard('beforeToolUse', (ctx) => (spoil(ctx.toolCall.args), ctx)),
      guard('beforeToolUse', (ctx) => (spoil(ctx.toolCall.args), ctx)),
      observe('beforeToolUse', (ctx) => spoil(ctx.toolCall.args)),
    ]
    const [at, map] = ['2026-01-02T03:04:05.000Z', 'k']
    const run = await useAll([{ name: 'note', args: { at, map } }], { use })
    const whole = { at: new Date(at), map: new Map([['k', { deep: [1] }]]) }
    assert.deepEqual([statuses(run), seen], [['ok'], [whole, whole, whole, whole]])
  })
}

test('a hook that is typed by the tool sees only valid input, and one that names it may repair invalid input', async () => {
  const seen: unknown[] = []
  const write = tool({ name: 'write', description: 'Writes.', input: numbered, execute: ({ n }) => n })
  const typed = hook('beforeToolUse', (ctx) => (seen.push(ctx.toolCall.args), ctx), { tool: write, priority: 2 })
  const named = hook('beforeToolUse', (ctx) => ctx.withArgs({ n: Number(ctx.toolCall.args['n']) }), {
    tool: 'write',
    priority: 1,
  })
  const later = hook('beforeToolUse', (ctx) => ctx.withArgs({ n: ctx.toolCall.args.n + 1 }), { tool: write })
  const calls = [{ n: '7' }, { n: 3 }].map((args) => ({ name: 'write', args }))
  const run = await useAll(calls, { use: [write, typed, named, later] })
  assert.deepEqual(seen, [{ n: 3 }])
  assert.deepEqual(
    executions(run).map(({ output }) => output),
    [8, 4],
  )
  assert.equal(run.ledger.filter(({ decision }) => decision === 'skipped').length, 1)
})

test('arguments are transformed, then parsed once, then judged, then used', async () => {
  const log: unknown[] = []
  const parsed = (n: number): number => (log.push(`parse ${n}`), n * 10)
  const input = z.object({ n: z.number().transform(parsed) })
  const write = tool({ name: 'write', description: 'Writes.', input, execute: ({ n }) => void log.push(`tool ${n}`) })
  const say = (who: string, args: unknown): void => void log.push(`${who} ${(args as { n: number }).n}`)
  const use = [
    guard('beforeToolUse', (ctx) => (say('guard', ctx.toolCall.args), ctx), { priority: 9 }),
    hook('beforeToolUse', (ctx) => (say('hook', ctx.toolCall.args), ctx.withArgs({ n: 2 })), { tool: 'write' }),
    hook('aroundToolUse', (ctx, next) => (say('around', ctx.toolCall.args), next())),
    write,
  ]
  await useAll([{ name: 'write', args: { n: 1 } }], { use })
  assert.deepEqual(log, ['hook 1', 'parse 2', 'guard 20', 'around 20', 'tool 20'])
})

for (const concurrent of [false, true]) {
  test(`of five hundred calls in one step each is judged, executed and reported once (concurrent: ${concurrent})`, async () => {
    const counts = { judged: 0, executed: 0, reported: 0 }
    const execute = ({ n }: { n: number }): number => (counts.executed++, n)
    const count = tool({ name: 'count', description: 'Counts.', input: numbered, execute, concurrent })
    const judge = guard('beforeToolUse', (ctx) => (counts.judged++, ctx))
    const use = [count, judge, hook('afterToolUse', (ctx) => (counts.reported++, ctx))]
    const run = await useAll(numbers('count', 500), { use })
    assert.equal(statuses(run).filter((status) => status === 'ok').length, 500)
    assert.deepEqual(counts, { judged: 500, executed: 500, reported: 500 })
  })
}
