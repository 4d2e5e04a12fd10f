// What must be true of the world, whatever became of the processes that worked on sessions in it.
import assert from 'node:assert/strict'
import type { AgentState } from '../../core/state/agent-state.ts'
import type { ToolExecution } from '../../core/state/tool-call.ts'
import { readSession } from '../log/read-session.ts'
import { doneIn, type Place } from './session-processes.fixture.ts'
import type { SessionStore } from '../stores/store.ts'

/** Sessions that ended, calls with an unknown outcome, and sessions that have not ended. */
type Counted = { readonly sessions: number; readonly unknown: number; readonly open: number }

/** The calls of the run that must not be repeated, and those that the approver allows again. */
const once = ['looka', 'lookb', 'lookc', 'pay!', 'send']
const always = ['wirex', 'wirey']

/** Every call was executed once or has an unknown outcome; calls that may be repeated were, under one key. */
export async function checkWorld(place: Place, store: SessionStore): Promise<Counted> {
  const done = doneIn(place)
  const ids = (await store.list()).map(({ id }) => id)
  assert.deepEqual(
    done.filter(({ session }) => !ids.includes(session)),
    [],
  )
  let [sessions, unknown, open] = [0, 0, 0]
  for (const id of ids) {
    const kept = readSession((await store.read(id))!.lines, id)
    if (kept.open !== undefined || kept.state === undefined) {
      open++ // what the last process was killed in
      continue
    }
    const { state } = kept
    sessions++
    assert.equal(state.execution?.status, 'completed', id)
    const results = resultsOf(state)
    const own = done.filter(({ session }) => session === id)
    for (const what of once) {
      const { status, interrupted } = results.get(what)!
      const times = own.filter((each) => each.what === what).length
      const isFine = status === 'ok' ? times === 1 : status === 'outcomeUnknown' && interrupted === true && times <= 1
      assert.ok(isFine, `${id}: ${what} was done ${times} times and is ${status}`)
      if (status !== 'ok') unknown++
    }
    for (const what of always) assert.equal(own.filter((each) => each.what === what).length, 1, `${id}: ${what}`)
    const notes = own.flatMap(({ what, key }) => (what === 'note' ? [key] : []))
    assert.deepEqual([results.get('note')?.status, new Set(notes).size], ['ok', 1], id)
    assert.ok(own.some(({ what }) => what === 'mail'))
  }
  return { sessions, unknown, open }
}

export function resultsOf(state: AgentState): ReadonlyMap<string, ToolExecution> {
  const results = new Map<string, ToolExecution>()
  for (const { toolCalls, toolExecutions } of state.execution!.steps) {
    for (const [i, { name, args }] of toolCalls.entries()) {
      results.set(`${name}${(args['of'] as string | undefined) ?? ''}`, toolExecutions[i]!)
    }
  }
  return results
}
