import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAgent } from '../create-agent.ts'
import { tool } from '../agent/tool.ts'
import type { Run } from '../agent/run.ts'
import type { Use } from '../agent/capability.ts'
import { hook } from '../hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { historyOf } from '../sessions/log/history.fixture.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import { RunLog } from './log.ts'
import { runRecordShapes, type RunRecord } from './records.ts'

const answer = 'Let me look it up for you.'
const result = 'It is a quarter past nine.'
const clock = tool({ name: 'clock', description: 'The time.', input: { type: 'object' }, execute: () => result })

/** The records of a run of two steps, and how it ended. */
async function recordsOf(
  ...use: readonly Use[]
): Promise<{ readonly records: readonly RunRecord[]; readonly run: Run }> {
  const store = memoryStore()
  const model = scriptedModel([{ text: answer, toolCalls: [{ name: 'clock', id: 'c' }] }, 'Done.'])
  const run = await createAgent({ model, store, use: [clock, ...use] }).run('What time is it?', { session: 's' })
  const { records } = historyOf((await store.read('s'))!.lines)
  const isOfRun = (record: object): record is RunRecord => Object.hasOwn(runRecordShapes, (record as RunRecord).t)
  return { records: (records as readonly object[]).filter(isOfRun), run }
}

function stateAfter(records: readonly RunRecord[]): unknown {
  const log = new RunLog()
  for (const record of records) log.apply(record)
  return log.root.state!.toJSON()
}

/** Whether a change has a text, and does not only refer to it. */
const hasChange = (records: readonly RunRecord[], text: string): boolean =>
  records.some((record) => 'change' in record && JSON.stringify(record.change).includes(text))

test('a change refers to what effects of its step have ended with, so that it is stored once', async () => {
  const { records, run } = await recordsOf()
  assert.deepEqual([hasChange(records, answer), hasChange(records, result)], [false, false])
  assert.deepEqual(stateAfter(records), run.state.toJSON())
})

test('what hooks have changed is stored as they left it', async () => {
  const rewrites = hook('afterInference', (ctx) => {
    const content = ctx.response.content.map((part) => (part.type === 'text' ? { ...part, text: 'Well.' } : part))
    return ctx.withResponse({ content })
  })
  const shortens = hook('afterToolUse', (ctx) => ctx.withOutput('Nine.'))
  const { records, run } = await recordsOf(rewrites, shortens)
  assert.deepEqual([hasChange(records, answer), hasChange(records, result)], [false, false])
  assert.deepEqual([hasChange(records, 'Well.'), hasChange(records, 'Nine.')], [true, true])
  assert.deepEqual(stateAfter(records), run.state.toJSON())
})

test('a change that refers to something that is not recorded is rejected with STATE_INVALID', async () => {
  const { records } = await recordsOf()
  const ends = records.filter(({ t }) => t === 'end')
  assert.ok(ends.length >= 3)
  for (const end of ends) {
    const message = /A stored change refers to ".*", which is not recorded/
    assert.throws(() => stateAfter(records.filter((each) => each !== end)), { code: 'STATE_INVALID', message })
  }
})
