import type { AgentState } from '../data/agent-state.ts'
import type { AgentEvent } from '../data/event.ts'
import type { Run } from './run.ts'

/** A run under way: what it says as an async iterable, its result as a promise. */
export type Live<E, O = string> = AsyncIterable<E> & { readonly run: Promise<Run<O>> }

/** Starts at once and never waits for its reader. Who stops reading lets the run go on. */
export function streamRun(start: (emit: (event: AgentEvent) => void) => Promise<Run>): Live<AgentEvent> {
  const events = new Channel<AgentEvent>()
  const run = start((event) => events.push(event))
  run.then(
    () => events.end(),
    (error: unknown) => events.fail(error),
  )
  return { run, [Symbol.asyncIterator]: () => events.read(() => undefined) }
}

/**
 * Takes one step at a time, when it is asked for the next. Who stops reading pauses the run after the step it has
 * just seen; who asks for `run` lets it go to its end.
 */
export function iterateRun(start: (pauses: (state: AgentState) => Promise<boolean>) => Promise<Run>): Live<AgentState> {
  const states = new Channel<AgentState>()
  let wanted: PromiseWithResolvers<void> = Promise.withResolvers()
  let [free, left] = [false, false]
  let run: Promise<Run> | undefined
  const begin = (): Promise<Run> => {
    run ??= start(async (state) => {
      states.push(state)
      if (!free && !left) await wanted.promise
      wanted = Promise.withResolvers()
      return left
    })
    run.then(
      ({ state }) => {
        states.push(state)
        states.end()
      },
      (error: unknown) => states.fail(error),
    )
    return run
  }
  return {
    get run() {
      free = true
      wanted.resolve()
      return run ?? begin()
    },
    [Symbol.asyncIterator]() {
      const reader = states.read(() => {
        left = true
        wanted.resolve()
      })
      let asked = false
      return {
        next: () => {
          if (run === undefined) void begin()
          else if (asked) wanted.resolve()
          asked = true
          return reader.next()
        },
        return: async () => {
          await reader.return!()
          await run
          return { done: true, value: undefined }
        },
      }
    },
  }
}

/** A queue between one writer that never waits and one reader that does. */
class Channel<T> {
  readonly #items: T[] = []
  #ended = false
  #error: { readonly value: unknown } | undefined
  #abandoned = false
  #wake: (() => void) | undefined

  push(item: T): void {
    if (this.#abandoned) return // nobody will ever read it
    this.#items.push(item)
    this.#wake?.()
  }

  end(): void {
    this.#ended = true
    this.#wake?.()
  }

  fail(error: unknown): void {
    this.#error = { value: error }
    this.end()
  }

  read(onReturn: () => void): AsyncIterator<T> {
    return {
      next: async () => {
        while (this.#items.length === 0 && !this.#ended) {
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
        }
        if (this.#items.length > 0) return { done: false, value: this.#items.shift()! }
        if (this.#error !== undefined) throw this.#error.value
        return { done: true, value: undefined }
      },
      return: async () => {
        this.#abandoned = true
        this.#items.length = 0
        onReturn()
        return { done: true, value: undefined }
      },
    }
  }
}
