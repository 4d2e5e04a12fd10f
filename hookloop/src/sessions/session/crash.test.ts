import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../../values/json.ts'
import type { TimedLedgerEntry } from '../../core/state/ledger.ts'
import { dyingStore, storeOf, type Death } from './dying-store.fixture.ts'
import { alwaysOnce, drive, eventfulAgent, onlyOnce } from './eventful-run.fixture.ts'
import { historyOf, type History } from '../log/history.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'

type Done = { readonly what: string; readonly key: string }
type Ended = { readonly kept: History; readonly done: readonly Done[] }

/** The run with nothing in its way; of each write, how much of the session and of the world was there before it. */
const undisturbed = await (async () => {
  const done: Done[] = []
  const [inner, before]: [SessionStore, { lines: number; done: number }[]] = [memoryStore(), []]
  let lines = 0
  const store: SessionStore = {
    ...inner,
    async open(id, options) {
      const writer = await inner.open(id, options)
      const append: typeof writer.append = (more, options) => {
        before.push({ lines, done: done.length })
        lines += more.length
        return writer.append(more, options)
      }
      return { ...writer, append }
    },
  }
  await drive(eventfulAgent(store, { note: (what, key) => done.push({ what, key }) }), store)
  const text = (await inner.read('eventful'))!.lines
  return { kept: historyOf(text), done, lines: text, before }
})()

/** Lets processes die one after the other, then one live, all over the same sessions and the same world. */
async function survive(inner: SessionStore, deaths: readonly Death[], done: Done[] = []): Promise<Ended> {
  const isDone = (what: string): boolean => done.some((each) => each.what === what)
  for (const death of deaths) {
    let alive = true
    const note = (what: string, key: string): void => void (alive && done.push({ what, key }))
    const store = dyingStore(inner, death)
    await Promise.race([drive(eventfulAgent(store, { note }), store, { isDone }), store.died])
    alive = false
  }
  await drive(eventfulAgent(inner, { note: (what, key) => done.push({ what, key }) }), inner, { isDone })
  return { kept: historyOf((await inner.read('eventful'))!.lines), done }
}

type Execution = { readonly status: string; readonly interrupted?: true }
type Comparable = { messages: { content: JsonObject[] }[]; steps: { calls: { id: string }[]; results: Execution[] }[] }

/** A state without its times, and without the results of the given calls. */
function comparable({ state }: History, without: ReadonlySet<string>): Comparable {
  const { messages, execution, ...rest } = JSON.parse(JSON.stringify(state)) as never as {
    messages: Comparable['messages']
    execution: { steps: { toolCalls: { id: string }[]; toolExecutions: Execution[] }[]; final: JsonObject }
  }
  const { steps, final, startedAt: _at, waitedMs: _ms, ...other } = execution as typeof execution & JsonObject
  const { at: _ended, ...ending } = final
  return {
    ...rest,
    ...other,
    ...ending,
    messages: messages.map(({ content, ...message }) => ({
      ...message,
      content: content.map((part) =>
        part['type'] === 'tool-result' && without.has(part['toolCallId'] as string) ? { type: 'unknown' } : part,
      ),
    })),
    steps: steps.map(({ toolCalls, toolExecutions, ...step }) => ({
      ...step,
      calls: toolCalls,
      results: toolExecutions.map((each, i) => (without.has(toolCalls[i]!.id) ? { status: 'unknown' } : each)),
    })),
  }
}

function interrupted(kept: History): ReadonlySet<string> {
  const steps = comparable(kept, new Set()).steps
  return new Set(
    steps.flatMap(({ calls, results }) => calls.flatMap(({ id }, i) => (results[i]!.interrupted === true ? [id] : []))),
  )
}

function withoutTimes(ledger: readonly TimedLedgerEntry[]): readonly object[] {
  return ledger.map(({ durationMs: _ms, ...entry }) => entry)
}

/** What must be true however often, and wherever, the run was interrupted. */
function check({ kept, done }: Ended, deaths: number): void {
  const unknown = interrupted(kept)
  assert.equal(kept.open, undefined)
  assert.deepEqual(comparable(kept, unknown), comparable(undisturbed.kept, unknown))
  const wasAsked = kept.log.ledger.some(({ call, trigger }) => call === alwaysOnce && trigger === 'beforeToolUse')
  if (unknown.size === 0 && !wasAsked)
    assert.deepEqual(withoutTimes(kept.log.ledger), withoutTimes(undisturbed.kept.log.ledger))
  for (const call of onlyOnce) {
    const times = done.filter(({ what }) => what === call).length
    assert.ok(times === 1 || (times === 0 && unknown.has(call)), `${call} was done ${times} times`)
  }
  assert.equal(done.filter(({ what }) => what === alwaysOnce).length, 1)
  for (const call of ['sync', 'count']) {
    const keys = done.flatMap(({ what, key }) => (what === call ? [key] : []))
    assert.ok(keys.length >= 1 && keys.length <= 1 + deaths && new Set(keys).size === 1, `${call}: ${keys.join()}`)
  }
  assert.ok(!unknown.has('sync') && !unknown.has('count') && !done.some(({ what }) => what === 'pay-bob'))
  for (const { what, key } of undisturbed.done) {
    const count = (all: readonly Done[]): number => all.filter((each) => each.what === what && each.key === key).length
    assert.ok(count(done) <= count(undisturbed.done) + deaths, `${what} ${key} was done ${count(done)} times`)
    if (what.startsWith('hook')) assert.ok(count(done) >= count(undisturbed.done), `${what} ${key} is missing`)
  }
}

test('the lines of a session contain the state that its run ended with', () => {
  assert.equal(undisturbed.kept.state?.execution?.status, 'completed')
  check(undisturbed, 0)
})

async function checkAll(
  cases: Iterable<{ readonly where: string; readonly ended: () => Promise<Ended>; deaths: number }>,
) {
  for (const { where, ended, deaths } of cases) {
    try {
      check(await ended(), deaths)
    } catch (error) {
      throw new Error(where, { cause: error })
    }
  }
}

function* everyWrite(how: (at: number) => readonly Death[]) {
  for (let at = 1; at <= undisturbed.before.length; at++) {
    for (const death of how(at)) {
      yield { where: JSON.stringify(death), ended: () => survive(memoryStore(), [death]), deaths: 1 }
    }
  }
}

test('D01, D04: a run that is interrupted before or after any write is resumed and repeats nothing', async () => {
  await checkAll(everyWrite((at) => [true, false].map((stored) => ({ at, stored }))))
})

test('D01: a session that was interrupted within a write is resumed', async () => {
  const { lines, before, done } = undisturbed
  const cuts = before.flatMap((write, i) => {
    const next = before[i + 1]?.lines ?? lines.length
    return Array.from({ length: Math.max(0, next - write.lines - 1) }, (_, more) => ({ ...write, cut: more + 1 }))
  })
  assert.ok(cuts.length > 5)
  await checkAll(
    cuts.map(({ lines: stored, done: noted, cut }) => ({
      where: `cut after line ${stored + cut}`,
      ended: async () => survive(await storeOf('eventful', lines.slice(0, stored + cut)), [], done.slice(0, noted)),
      deaths: 1,
    })),
  )
})
