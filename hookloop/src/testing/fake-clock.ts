import { optionTypes } from '../values/option-types.ts'
import type { Clock } from '../core/effects/run-time.ts'
import { MAX_TIMER_MS } from '../system/timeout.ts'
import { checkOptions } from '../values/check-options.ts'

/** A clock that only moves when a test advances it. */
export type FakeClock = Clock & {
  /** Advances time, and resolves the sleeps that are over, in order. */
  advance(ms: number): Promise<void>
}

/**
 * Creates a clock that stands still until a test advances it. With `auto`, each sleep advances it, so that code that waits for
 * minutes is tested in milliseconds.
 *
 * @example
 * const clock = fakeClock({ auto: true })
 * await agent.run('Hello.', { effects: liveEffects({ clock }) })
 * assert.equal(clock.now(), 30_000) // the time that retries have waited
 */
export function fakeClock(options: { readonly startAt?: number; readonly auto?: boolean } = {}): FakeClock {
  checkOptions('fakeClock', options, { startAt: optionTypes.finite, auto: optionTypes.any })
  let now = options.startAt ?? 0
  let sleepers: { readonly until: number; readonly wake: () => void }[] = []
  const wakeDue = async (): Promise<void> => {
    const due = sleepers.filter((each) => each.until <= now).toSorted((a, b) => a.until - b.until)
    sleepers = sleepers.filter((each) => each.until > now)
    for (const each of due) {
      each.wake()
      await soon() // lets the woken code run first
    }
  }
  return {
    now: () => now,
    async sleep(ms, signal) {
      const isAborted = (): boolean => signal?.aborted === true
      if (isAborted()) return
      if (options.auto === true) {
        await soon() // work that does not wait for time runs first
        if (isAborted() || Number.isFinite(ms)) {
          if (!isAborted()) now += ms
          return
        }
      }
      await new Promise<void>((wake) => {
        sleepers.push({ until: now + ms, wake })
        signal?.addEventListener('abort', () => wake(), { once: true })
      })
    },
    after(ms, act) {
      const until = now + ms
      if (options.auto === true) {
        return afterRealTime(ms, () => {
          now = Math.max(now, until)
          act()
        })
      }
      let timer: NodeJS.Immediate | undefined
      const sleeper = { until, wake: () => void (timer = setImmediate(act)) } // like a timer, not amid the work that advances it
      sleepers.push(sleeper)
      return () => {
        clearImmediate(timer)
        sleepers = sleepers.filter((each) => each !== sleeper)
      }
    },
    async advance(ms) {
      now += ms
      await wakeDue()
    },
  }
}

/** Only a sleep moves an auto clock. Work with a time limit may wait for something real, so the limit is real as well. */
function afterRealTime(ms: number, act: () => void): () => void {
  const timer = setTimeout(act, Math.min(ms, MAX_TIMER_MS))
  return () => clearTimeout(timer)
}

function soon(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
