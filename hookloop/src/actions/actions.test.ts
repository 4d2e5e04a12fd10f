import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { tool } from '../core/agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import { scriptedModel } from '../models/scripted.ts'
import { guard, hook, observe, type Hook } from '../core/hooks/hook.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import { strictReplay } from '../sessions/replay/strict-replay.fixture.ts'
import { shell } from './shell.ts'

// Commands as hooks of complete runs.

const folder = mkdtempSync(join(tmpdir(), 'hookloop-actions-'))
after(() => rmSync(folder, { recursive: true, force: true }))

let files = 0
const newFile = (): string => join(folder, String(++files))

/** An agent that calls `work` once, which writes to a file. */
function world(...use: readonly Hook[]) {
  const mark = newFile()
  const work = tool({
    name: 'work',
    description: 'Works.',
    input: { type: 'object', properties: { n: { type: 'number' } } },
    execute: ({ n }) => {
      writeFileSync(mark, JSON.stringify(n), { flag: 'a' })
      return 'worked'
    },
  })
  const model = (): ReturnType<typeof scriptedModel> =>
    scriptedModel([{ toolCalls: [{ name: 'work', args: { n: 1 } }] }, 'done'])
  const store = memoryStore()
  return {
    store,
    agent: createAgent({ model: model(), store, use: [work, ...use] }),
    worked: () => (existsSync(mark) ? readFileSync(mark, 'utf8') : ''),
  }
}

suite('shell in a run', () => {
  test('the ledger has the decision, the changes and the duration of a command', async () => {
    const judged = world(guard('beforeToolUse', shell({ command: 'echo no >&2; exit 2' }), { name: 'judge' }))
    const changed = world(
      hook('beforeToolUse', shell({ command: `echo '{"updatedInput":{"n":2}}'` }), { name: 'change' }),
    )
    const [first, second] = [await judged.agent.run('go'), await changed.agent.run('go')]
    const said = first.ledger.find(({ hook: by }) => by === 'judge')!
    assert.deepEqual([said.decision, said.message, said.durationMs > 0], ['block', 'no', true])
    const change = second.ledger.find(({ hook: by }) => by === 'change')!
    assert.deepEqual([change.changes?.[0]?.path, changed.worked()], ['args.n', '2'])
  })

  test('a replay does not run commands again, in any mode', async () => {
    const marks = newFile()
    const marking = (what: string) => shell({ command: `printf ${what} >> "${marks}"` })
    const { agent, store } = world(
      hook('beforeToolUse', marking('h'), { name: 'h' }),
      guard('beforeToolUse', marking('g'), { name: 'g' }),
      observe('afterToolUse', marking('o'), { name: 'o' }),
    )
    await agent.run('go', { session: 's' })
    await strictReplay(agent, store, 's')
    assert.equal(readFileSync(marks, 'utf8'), 'hgo')
  })
})
