type Timer = ReturnType<typeof setTimeout>

/**
 * Runs `act`, and returns a count of the timers that were started meanwhile and still keep the process alive. Timers of other tests
 * in the process do not count. A timer of a minute or more never counts: see `scripts/test-setup.ts`.
 */
export async function startedTimers(act: () => unknown): Promise<() => number> {
  const { setTimeout: startTimeout, setInterval: startInterval } = globalThis
  const started: Timer[] = []
  const recording = (start: (...given: never[]) => Timer): never => {
    const startAndRecord = (...given: never[]): Timer => {
      const timer = start(...given)
      started.push(timer)
      return timer
    }
    return Object.assign(startAndRecord, start) as never
  }
  globalThis.setTimeout = recording(startTimeout)
  globalThis.setInterval = recording(startInterval)
  try {
    await act()
  } finally {
    globalThis.setTimeout = startTimeout
    globalThis.setInterval = startInterval
  }
  // The public methods do not say whether a timer has fired or was cleared.
  return () => started.filter((timer) => Reflect.get(timer, '_destroyed') !== true && timer.hasRef()).length
}
