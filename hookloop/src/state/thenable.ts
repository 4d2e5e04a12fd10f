// What a step does is mostly synchronous: hooks, schemas and tools that return no promise. Awaiting each of them would
// cost more than the rest of the step, so only promises are awaited.

export type MaybePromise<T> = T | Promise<T>

/** Continues with a value now, or with the result of its promise later. */
export function andThen<T, R>(value: MaybePromise<T>, act: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(act) : act(value)
}

/** Runs a function, and handles what it throws or rejects with. */
export function orElse<T>(work: () => MaybePromise<T>, handle: (thrown: unknown) => MaybePromise<T>): MaybePromise<T> {
  try {
    const result = work()
    return result instanceof Promise ? result.catch(handle) : result
  } catch (thrown) {
    return handle(thrown)
  }
}

/** Whether a value returned by user code must be awaited. Our own functions return real promises. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return value instanceof Promise || typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}
