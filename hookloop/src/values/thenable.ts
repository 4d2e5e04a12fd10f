export type MaybePromise<T> = T | Promise<T>

/** Continues with a value now, or with the result of its promise later. */
export function andThen<T, R>(value: MaybePromise<T>, act: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(act) : act(value)
}

/** Whether a value returned by user code must be awaited. Our own functions return real promises. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return value instanceof Promise || typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}
