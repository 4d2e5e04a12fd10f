import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { tool } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-memory-'))
after(() => rmSync(folder, { recursive: true }))

const source = (path: string): string => JSON.stringify(fileURLToPath(new URL(path, import.meta.url)))

/** A run whose second call needs more memory than the process may have. */
const script = (path: string, notes: string): string => `
  import { appendFileSync } from 'node:fs'
  const { createAgent } = await import(${source('../../create-agent.ts')})
  const { tool } = await import(${source('../../core/agent/tool.ts')})
  const { scriptedModel } = await import(${source('../../models/scripted.ts')})
  const { sqliteStore } = await import(${source('../stores/sqlite-store.ts')})
  const work = (name) => tool({ name, description: 'Works.', input: { type: 'object' }, idempotent: name === 'greedy', execute: () => {
    appendFileSync(${JSON.stringify(notes)}, name + '\\n')
    for (const kept = []; name === 'greedy';) kept.push(new Array(100_000).fill(Math.random()))
    return name + ' done'
  } })
  const call = (name) => ({ toolCalls: [{ name, args: {}, id: name }] })
  const model = scriptedModel([call('first'), call('greedy'), 'Done.'])
  await createAgent({ model, store: sqliteStore(${JSON.stringify(path)}), use: [work('first'), work('greedy')] }).run('Go.', { session: 's' })
`

test('a run whose process is killed by its memory limit is resumed by another process, and nothing that it completed is lost or repeated', async () => {
  const [path, notes] = [join(folder, 'x.db'), join(folder, 'notes')]
  const args = [
    '--max-old-space-size=60',
    '--conditions=hookloop-source',
    '--input-type=module',
    '-e',
    script(path, notes),
  ]
  const killed = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.ok(killed.signal !== null || killed.status !== 0)
  assert.match(killed.stderr, /heap out of memory/)
  assert.equal(readFileSync(notes, 'utf8'), 'first\ngreedy\n')
  const done: string[] = []
  const work = (name: string) =>
    tool({
      name,
      description: 'Works.',
      input: { type: 'object' },
      idempotent: name === 'greedy',
      execute: () => {
        done.push(name)
        return `${name} done`
      },
    })
  const store = sqliteStore(path)
  const model = scriptedModel(['Done.']) // the answers that it gave before are recorded
  const run = await createAgent({ model, store, use: [work('first'), work('greedy')] }).resume('s')
  assert.deepEqual([run.status, done], ['completed', ['greedy']])
  assert.deepEqual(
    run.state.execution?.steps.map(({ toolExecutions }) => toolExecutions[0]?.output),
    ['first done', 'greedy done', undefined],
  )
  await store.close()
})
