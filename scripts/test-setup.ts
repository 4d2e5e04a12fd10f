// Preloaded by every process that runs tests.
import { appendFileSync, readFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
import fc from 'fast-check'

// Property tests draw their values from the seed that the runner chose.
fc.configureGlobal({ seed: Number(process.env['HOOKLOOP_TEST_SEED']) })

// A run that a test abandons, as a killed process would, still has its time limit of minutes: it must not delay the end of
// the test process.
const MINUTE = 60_000
const startTimer = setTimeout
globalThis.setTimeout = Object.assign((act: (...given: unknown[]) => void, ms?: number, ...given: unknown[]) => {
  const timer = startTimer(act, ms, ...given)
  return ms !== undefined && ms >= MINUTE ? timer.unref() : timer
}, startTimer)

// For `--times`: the CPU seconds of this process and of the processes that it started and waited for. Linux counts in 10 ms.
const times = process.env['HOOKLOOP_TEST_TIMES']
if (times !== undefined && isMainThread) {
  process.on('exit', () => {
    const fields = readFileSync('/proc/self/stat', 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    appendFileSync(times, String(ticks / 100))
  })
}
