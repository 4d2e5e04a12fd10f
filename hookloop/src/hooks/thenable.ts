/** Continues with a value now, or with the result of its promise later: what is synchronous costs no microtask. */
export function andThen<T, R>(value: T | Promise<T>, act: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(act) : act(value)
}

/** Whether a value returned by user code must be awaited. Our own functions return real promises. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return value instanceof Promise || typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}
