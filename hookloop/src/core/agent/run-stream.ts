import type { AgentState } from '../state/agent-state.ts'
import type { AgentEvent, EventListener } from '../state/event.ts'
import type { Run } from './run.ts'

/**
 * A running agent: an async iterable of events or states, and a promise of the result.
 *
 * @example
 * const live = agent.stream('Tell me a story.')
 * for await (const event of live) if (event.type === 'text') process.stdout.write(event.delta)
 * const run = await live.run
 */
export type RunStream<E, O = string> = AsyncIterable<E> & { readonly run: Promise<Run<O>> }

/** Starts a run at once and emits its events, without waiting for the reader. The run continues when the reader stops. */
export function streamRun(start: (listener: EventListener) => Promise<Run>): RunStream<AgentEvent> {
  const events = new Channel<AgentEvent>()
  const run = start((event) => events.push(event))
  run.then(
    () => events.end(),
    (error: unknown) => events.fail(error),
  )
  return {
    run,
    [Symbol.asyncIterator]: () => ({
      next: () => events.next(),
      return: async () => {
        events.abandon()
        return { done: true, value: undefined }
      },
    }),
  }
}

/**
 * Takes one step each time the reader asks for the next state. When the reader stops, the run is paused after that step;
 * reading `run` lets it run to its end.
 */
export function iterateRun(
  start: (pauses: (state: AgentState) => Promise<boolean>) => Promise<Run>,
): RunStream<AgentState> {
  const states = new Channel<AgentState>()
  let [asked, given, free, left] = [0, 0, false, false]
  let wake: () => void = () => undefined
  let run: Promise<Run> | undefined
  const begin = (): Promise<Run> => {
    if (run !== undefined) return run
    run = start(async (state) => {
      states.push(state)
      given++
      const waits = (): boolean => !free && !left && asked <= given
      while (waits()) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
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
      wake()
      return begin()
    },
    [Symbol.asyncIterator]: () => ({
      next: () => {
        asked++
        wake()
        void begin()
        return states.next()
      },
      return: async () => {
        left = true
        states.abandon()
        wake()
        await run
        return { done: true, value: undefined }
      },
    }),
  }
}

/** A queue between a writer that never waits and any number of concurrent reads. */
class Channel<T> {
  #items: T[] = []
  /** How many items were read. Removing them one by one would take quadratic time. */
  #read = 0
  readonly #readers: (() => void)[] = []
  #ended = false
  #error: { readonly value: unknown } | undefined
  #abandoned = false

  push(item: T): void {
    if (this.#abandoned || this.#ended) return // it will not be read, or comes too late
    this.#items.push(item)
    this.#readers.shift()?.()
  }

  end(): void {
    this.#ended = true
    for (const wake of this.#readers.splice(0)) wake()
  }

  fail(error: unknown): void {
    this.#error = { value: error }
    this.end()
  }

  abandon(): void {
    this.#abandoned = true
    this.#items = []
    this.#read = 0
    this.end()
  }

  async next(): Promise<IteratorResult<T>> {
    while (this.#read === this.#items.length && !this.#ended) {
      await new Promise<void>((resolve) => this.#readers.push(resolve))
    }
    if (this.#read < this.#items.length) return { done: false, value: this.#take() }
    if (this.#error !== undefined) throw this.#error.value
    return { done: true, value: undefined }
  }

  #take(): T {
    const item = this.#items[this.#read++]!
    if (this.#read === this.#items.length || this.#read > 1_000) {
      this.#items = this.#items.slice(this.#read)
      this.#read = 0
    }
    return item
  }
}
