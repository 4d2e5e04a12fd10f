import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { hasProc, listProcesses, listProcessesSince, forkCountNow } from './process-list.ts'

test('processes started after another one are found by reading the pids since then', { skip: !hasProc }, () => {
  const startedAt = forkCountNow()
  const children = Array.from({ length: 3 }, () => spawn('sleep', ['60']))
  const pids = children.map(({ pid }) => pid!)
  const since = listProcessesSince(pids[0]!, { ...startedAt, at: 0 }).map(({ pid }) => pid)
  for (const child of children) child.kill('SIGKILL')
  assert.deepEqual(
    pids.filter((pid) => !since.includes(pid)),
    [],
  )
})

test('when pids may have wrapped around, all processes are listed', { skip: !hasProc }, () => {
  const all = listProcesses().length
  const { forks } = forkCountNow()
  const [unknown, many, behind] = [undefined, forks! - 1_000_000, forks].map((each) => ({ forks: each, at: 0 }))
  const found = [listProcessesSince(process.pid, unknown!), listProcessesSince(process.pid, many!)]
  for (const each of [...found, listProcessesSince(2 ** 22, behind!)]) {
    assert.ok(each.length > all / 2 && each.some(({ pid }) => pid === process.ppid))
  }
})
