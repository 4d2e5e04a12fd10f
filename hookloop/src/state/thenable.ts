// What a step does is mostly synchronous: hooks, schemas and tools that return no promise. Awaiting each of them would
// cost more than the rest of the step, so only promises are awaited.

export type MaybePromise<T> = T | Promise<T>

/**
 * Continues with a value now, or with the result of its promise later. What `act` needs is passed as arguments: a closure
 * would be allocated on every step, although few values are promises.
 */
export function andThen<T, R>(value: MaybePromise<T>, act: (value: T) => MaybePromise<R>): MaybePromise<R>
export function andThen<T, A, R>(
  value: MaybePromise<T>,
  act: (value: T, a: A) => MaybePromise<R>,
  a: NoInfer<A>,
): MaybePromise<R>
export function andThen<T, A, B, R>(
  value: MaybePromise<T>,
  act: (value: T, a: A, b: B) => MaybePromise<R>,
  a: NoInfer<A>,
  b: NoInfer<B>,
): MaybePromise<R>
export function andThen<T, A, B, C, R>(
  value: MaybePromise<T>,
  act: (value: T, a: A, b: B, c: C) => MaybePromise<R>,
  a: NoInfer<A>,
  b: NoInfer<B>,
  c: NoInfer<C>,
): MaybePromise<R>
export function andThen(value: unknown, act: Act, a?: unknown, b?: unknown, c?: unknown): unknown {
  return value instanceof Promise ? later(value, act, a, b, c) : act(value, a, b, c)
}

type Act = (value: unknown, ...rest: readonly unknown[]) => unknown

/** Separate, so that only promises cost a closure. */
function later(value: Promise<unknown>, act: Act, a: unknown, b: unknown, c: unknown): Promise<unknown> {
  return value.then((result) => act(result, a, b, c))
}

/** Runs a function, and handles what it throws or rejects with. Both get the same arguments. */
export function orElse<T, A, B = void>(
  work: (a: A, b: B) => MaybePromise<T>,
  handle: (thrown: unknown, a: A, b: B) => T,
  a: NoInfer<A>,
  b: NoInfer<B>,
): MaybePromise<T> {
  try {
    const result = work(a, b)
    return result instanceof Promise ? handleLater(result, handle, a, b) : result
  } catch (thrown) {
    return handle(thrown, a, b)
  }
}

function handleLater<T, A, B>(result: Promise<T>, handle: (thrown: unknown, a: A, b: B) => T, a: A, b: B): Promise<T> {
  return result.catch((thrown: unknown) => handle(thrown, a, b))
}

/** Whether a value returned by user code must be awaited. Our own functions return real promises. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return value instanceof Promise || typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}
