import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { isSoak } from '../stores/kills.fixture.ts'
import { readSession } from '../log/read-session.ts'
import { doneIn, folder, start, type Place } from './session-processes.fixture.ts'
import { checkWorld, resultsOf } from './session-world.fixture.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'

const place: Place = { kind: 'sqlite', place: join(folder, 'points.db'), world: join(folder, 'points.log') }
const store = sqliteStore(place.place)
after(() => store.close())

const lifecycle =
  'onUserInput beforeExecution beforeStep beforeInference aroundInference afterInference beforeToolUse aroundToolUse ' +
  'tool done afterToolUse afterStep onPause onResume onStop afterExecution'

/** Every point that an undisturbed run reaches. */
async function pointsOf(id: string): Promise<readonly string[]> {
  const child = start(place, ['end', id], { KILL_IN: 'nowhere' })
  assert.equal(await child.ended, 0, child.errors())
  return child.lines.filter((line) => line.includes(':'))
}

async function killAt(points: readonly string[]): Promise<readonly string[]> {
  const ids: string[] = []
  for (const point of points) {
    const id = point.replaceAll(/[ :]/g, '-')
    const child = start(place, ['end', id], { KILL_IN: point })
    assert.equal(await child.ended, 'SIGKILL', `${point}: ${child.errors()}`)
    ids.push(id)
  }
  return ids
}

test('D01, D04: a run that is killed at any point of the lifecycle and resumed ends like an undisturbed run', async (t) => {
  const all = await pointsOf('undisturbed')
  assert.deepEqual(new Set(all.map(phaseOf)), new Set(lifecycle.split(' ')))
  const points = isSoak
    ? all
    : all.filter((point, i) => all.findLastIndex((each) => phaseOf(each) === phaseOf(point)) === i)
  const half = Math.ceil(points.length / 2)
  const ids = (await Promise.all([killAt(points.slice(0, half)), killAt(points.slice(half))])).flat()
  const last = start(place, ['end', ids.join(',')], { KILL_IN: 'never' })
  assert.equal(await last.ended, 0, last.errors())
  const { sessions, unknown, open } = await checkWorld(place, store)
  assert.deepEqual([sessions, open], [points.length + 1, 0])
  const undisturbed = await saidIn('undisturbed')
  for (const id of ids) assert.deepEqual(await saidIn(id), undisturbed, id)
  assert.equal(doneIn(place).filter(({ session }) => session === 'undisturbed').length, 9)
  t.diagnostic(`${points.length} points, ${unknown} outcomes unknown`)
})

function phaseOf(point: string): string {
  return point.split(/[ :]/)[0]!
}

/** The messages of a session and the results of its calls; an unknown outcome counts as ok. */
async function saidIn(id: string): Promise<readonly unknown[]> {
  const { state } = readSession((await store.read(id))!.lines, id)
  const results = [...resultsOf(state!)].map(([what, { status }]) => [
    what,
    status === 'outcomeUnknown' ? 'ok' : status,
  ])
  const asked = state!.messages.slice().filter(({ role }) => role !== 'tool')
  return [asked, results, state!.usage.steps, state!.usage.toolCalls, state!.execution?.final?.reason]
}
