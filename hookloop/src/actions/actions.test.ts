import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { tool } from '../core/agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import type { AgentEvent } from '../core/state/event.ts'
import { scriptedModel } from '../models/scripted.ts'
import { guard, hook, observe, type Hook } from '../core/hooks/hook.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import { strictReplay } from '../sessions/replay/strict-replay.fixture.ts'
import { shell } from './shell.ts'

// Commands as hooks of complete runs: their effect, and that no process is left.

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
  const failures: readonly [what: string, command: string, timeoutMs: number | undefined][] = [
    ['hangs', 'sleep 60', 200],
    ['exits with 1', 'exit 1', undefined],
    ['exits with 2', 'exit 2', undefined],
    ['is killed', 'kill -9 $$', undefined],
    ['does not exist', 'no-such-command-anywhere', undefined],
    ['prints without end', 'yes', 3_000],
    ['prints errors without end', 'yes >&2', 200],
    ['prints something that is not an outcome', 'echo hello', undefined],
    ['prints another line before its outcome', `echo hi; echo '{"decision":"allow"}'`, undefined],
  ]
  for (const [what, command, timeoutMs] of failures) {
    const options = { name: 'judge', ...(timeoutMs !== undefined && { timeoutMs }) }

    test(`a command that ${what} blocks as a guard, and the tool does not run`, async () => {
      const { agent, worked } = world(guard('beforeToolUse', shell({ command }), options))
      const run = await agent.run('go')
      const [execution] = run.state.execution!.steps.at(0)!.toolExecutions
      assert.deepEqual([worked(), execution!.status, run.status], ['', 'blocked', 'completed'])
    })

    test(`a command that ${what} has no effect as an observer, and its failure is in the ledger`, async () => {
      const { agent, worked } = world(observe('beforeToolUse', shell({ command }), options))
      const run = await agent.run('go')
      const isNo = command === 'exit 2'
      const noted = run.ledger.some(({ hook: by, error }) => by === 'judge' && error !== undefined)
      assert.deepEqual([worked(), run.status, noted], ['1', 'completed', !isNo])
    })
  }

  test('a failing command as a hook continues, blocks or fails the run, as onFailure says', async () => {
    const failing = shell({ command: 'exit 1' })
    const continues = world(hook('beforeToolUse', failing, { name: 'h', onFailure: 'continue' }))
    const blocks = world(hook('beforeToolUse', failing, { name: 'h', onFailure: 'block' }))
    const fails = world(hook('beforeToolUse', failing, { name: 'h' }))
    const runs = [await continues.agent.run('go'), await blocks.agent.run('go'), await fails.agent.run('go')]
    assert.deepEqual(
      [continues, blocks, fails].map(({ worked }) => worked()),
      ['1', '', ''],
    )
    assert.deepEqual(
      runs.map(({ status }) => status),
      ['completed', 'completed', 'failed'],
    )
  })

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

  test('a cancelled run ends its command and all processes of the command', async () => {
    const pids = newFile()
    const command = `echo $$ > "${pids}"; (sleep 300 & echo $! >> "${pids}"; wait); sleep 300`
    const { agent, worked } = world(guard('beforeToolUse', shell({ command }), { name: 'judge' }))
    const cancel = new AbortController()
    const running = agent.run('go', { signal: cancel.signal })
    while (!existsSync(pids) || readFileSync(pids, 'utf8').trim().split('\n').length < 2) await sleep(10)
    cancel.abort()
    const { status } = await running
    const left = readFileSync(pids, 'utf8')
      .trim()
      .split('\n')
      .filter((pid) => isAlive(Number(pid)))
    assert.deepEqual([status, worked(), left], ['cancelled', '', []])
  })

  test('a command that times out is ended with all its processes', async () => {
    const pids = newFile()
    const command = `trap '' TERM; echo $$ > "${pids}"; sleep 300 & echo $! >> "${pids}"; sleep 300`
    const { agent } = world(guard('beforeToolUse', shell({ command }), { name: 'judge', timeoutMs: 3_000 }))
    await agent.run('go')
    const left = readFileSync(pids, 'utf8')
      .trim()
      .split('\n')
      .filter((pid) => isAlive(Number(pid)))
    assert.deepEqual(left, [])
  })

  test('a command judges parallel calls one by one', async () => {
    const done: number[] = []
    const work = tool({
      name: 'work',
      description: 'Works.',
      input: { type: 'object', properties: { n: { type: 'number' } } },
      concurrent: true,
      execute: ({ n }) => void done.push(n as number),
    })
    const even = shell({ command: `grep -q '"n":[0-9]*[02468]}' || { echo odd >&2; exit 2; }` })
    const toolCalls = Array.from({ length: 10 }, (_, n) => ({ name: 'work', args: { n } }))
    const model = scriptedModel([{ toolCalls }, 'done'])
    await createAgent({ model, use: [work, guard('beforeToolUse', even, { name: 'even' })] }).run('go')
    assert.deepEqual(
      done.toSorted((a, b) => a - b),
      [0, 2, 4, 6, 8],
    )
  })

  test('the arguments of a call are neither on the command line nor in the environment of a command', async () => {
    const mark = newFile()
    const args = { n: 1, text: `"; touch ${mark}; #$(touch ${mark})\`touch ${mark}\`\n touch ${mark}` }
    const { agent } = world()
    const model = scriptedModel([{ toolCalls: [{ name: 'work', args }] }, 'done'])
    const judged = guard('beforeToolUse', shell({ command: 'cat > /dev/null; env | grep -q touch && exit 2; true' }))
    const free = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked' })
    const run = await createAgent({ model, use: [free, judged] }).run('go')
    assert.equal(agent.describe().tools.length, 1)
    const [execution] = run.state.execution!.steps.at(0)!.toolExecutions
    assert.deepEqual([existsSync(mark), execution!.status], [false, 'ok'])
  })

  test('invalid output of a command that observes is a warning event and nothing else', async () => {
    const { agent } = world(observe('afterToolUse', shell({ command: 'echo nonsense' }), { name: 'watcher' }))
    const events: AgentEvent[] = []
    const live = agent.stream('go')
    for await (const event of live) events.push(event)
    const { status, ledger } = await live.run
    const noted = ledger.find(({ hook: by, error }) => by === 'watcher' && error !== undefined)
    assert.equal(status, 'completed')
    assert.match(noted?.error ?? '', /not JSON/)
  })
})

test('fifty parallel runs with three commands for each call apply the decision of each command', async () => {
  const pass = (name: string): Hook => guard('beforeToolUse', shell({ command: 'cat > /dev/null' }), { name })
  const judge = guard('beforeToolUse', shell({ command: `grep -q '"n":[0-9]*[13579]}' && exit 2; exit 0` }), {
    name: 'c',
  })
  const done: number[] = []
  const work = tool({
    name: 'work',
    description: 'Works.',
    input: { type: 'object', properties: { n: { type: 'number' } } },
    execute: ({ n }) => void done.push(n as number),
  })
  const runs = Array.from({ length: 50 }, (_, n) => {
    const model = scriptedModel([{ toolCalls: [{ name: 'work', args: { n } }] }, 'done'])
    return createAgent({ model, use: [work, pass('a'), pass('b'), judge] }).run('go')
  })
  const statuses = new Set((await Promise.all(runs)).map(({ status }) => status))
  assert.deepEqual([...statuses], ['completed'])
  assert.deepEqual(
    done.toSorted((a, b) => a - b),
    Array.from({ length: 25 }, (_, i) => i * 2),
  )
})

function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return !/\) Z /.test(stat)
  } catch {
    return false
  }
}
