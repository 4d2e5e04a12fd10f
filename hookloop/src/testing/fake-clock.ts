import type { Clock } from '../effects/effects.ts'

/** A clock that only moves when a test advances it. */
export type FakeClock = Clock & {
  /** Moves time forward and ends the sleeps that are due, in order. */
  advance(ms: number): Promise<void>
}

/**
 * A clock that moves only when it is advanced: `liveEffects({ clock: fakeClock() })`. With `auto`, a sleep moves
 * it forward by itself, so that code that waits for minutes is tested in no time.
 */
export function fakeClock(options: { readonly startAt?: number; readonly auto?: boolean } = {}): FakeClock {
  let now = options.startAt ?? 0
  let sleepers: { readonly until: number; readonly wake: () => void }[] = []
  const wakeDue = async (): Promise<void> => {
    const due = sleepers.filter((each) => each.until <= now).toSorted((a, b) => a.until - b.until)
    sleepers = sleepers.filter((each) => each.until > now)
    for (const each of due) {
      each.wake()
      await soon() // lets what woke up do its work first
    }
  }
  return {
    now: () => now,
    async sleep(ms, signal) {
      const over = (): boolean => signal?.aborted === true
      if (over()) return
      if (options.auto === true) {
        await soon() // pending work that needs no time runs first
        if (over() || Number.isFinite(ms)) {
          if (!over()) now += ms
          return
        }
      }
      await new Promise<void>((wake) => {
        sleepers.push({ until: now + ms, wake })
        signal?.addEventListener('abort', () => wake(), { once: true })
      })
    },
    async advance(ms) {
      now += ms
      await wakeDue()
    },
  }
}

function soon(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
