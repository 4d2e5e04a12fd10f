import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CappedOutput } from '../../system/processes/capped-output.ts'
import type { ProcessResult } from '../../system/processes/run-process.ts'
import { showResult } from './show-output.ts'

const problem = 'Some of its processes could not be ended, and may still be running.'

function shown(result: Pick<ProcessResult, 'ended' | 'leftBehind'>): string {
  const empty = new CappedOutput({ head: 10, tail: 10 }).result()
  const all: ProcessResult = { exitCode: 0, signal: null, stdout: empty, stderr: empty, problem, ...result }
  return showResult(all, { headChars: 10, tailChars: 10 }, { timeoutMs: 5 })
}

test('a result does not claim that all processes were ended if some may still be running', () => {
  assert.deepEqual(
    [
      shown({ ended: 'timedOut', leftBehind: false }),
      shown({ ended: 'cancelled', leftBehind: false }),
      shown({ ended: 'exited', leftBehind: true }),
    ],
    [
      `The command did not end within 5 ms. It was ended.\n${problem}\nOutput so far:\n(no output)`,
      `The command was cancelled, and ended.\n${problem}\n(no output)`,
      `${problem}\n(no output)`,
    ],
  )
})
