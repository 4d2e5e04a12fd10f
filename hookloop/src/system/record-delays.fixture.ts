import { syncBuiltinESMExports } from 'node:module'
import type { TestContext } from 'node:test'
import timers from 'node:timers/promises'

/** Until the test ends, a wait with `setTimeout` of node:timers/promises is over at once. Returns how long each would have been. */
export function recordDelays(t: TestContext): number[] {
  const delays: number[] = []
  const { mock } = t.mock.method(timers, 'setTimeout', async (ms: number) => void delays.push(ms))
  syncBuiltinESMExports()
  t.after(() => {
    mock.restore()
    syncBuiltinESMExports()
  })
  return delays
}
