import type { JsonObject } from '../../../state/json.ts'
import type { RanHandler } from './run-event.ts'

const MAX_ENTRIES = 1_000

type LateText = { readonly text: string; isReceived: boolean }

/** A background hook has a text that the model should receive now. */
export type Wake = {
  readonly session: string
  readonly text: string
  /** Whether the model has received it with another event of the session. */
  readonly isReceived: () => boolean
}

/** What handlers of a session share in this process. */
export class HookMemory {
  readonly #once = new Latest<Set<string>>()
  readonly #late = new Latest<LateText[]>()
  readonly #background = new Map<string, Set<{ readonly stop: AbortController }>>()
  readonly #interrupts = new Latest<string>()
  readonly #calls = new Latest<JsonObject>()
  readonly #continued = new Latest<true>()

  /** Handlers with `once` that have run in a session. */
  onceDone(session: string): Set<string> {
    return this.#once.get(session) ?? this.#once.set(session, new Set())
  }

  /** Stores the texts of a background handler for the next event. `onWake` can start one. */
  follow(
    session: string,
    late: Promise<RanHandler>,
    { stop, onWake }: { readonly stop: AbortController; readonly onWake: ((wake: Wake) => void) | undefined },
  ): void {
    const ended = this.startBackground(session, stop)
    void late.then(({ answer: { context, systemMessage, wakes } }) => {
      ended()
      if (stop.signal.aborted) return
      const texts = [context, systemMessage, wakes].flatMap((text): LateText[] =>
        text === undefined || text === '' ? [] : [{ text, isReceived: false }],
      )
      if (texts.length > 0) (this.#late.get(session) ?? this.#late.set(session, [])).push(...texts)
      const last = texts.at(-1)
      if (wakes !== undefined && last !== undefined)
        onWake?.({ session, text: wakes, isReceived: () => last.isReceived })
    })
  }

  /** Registers background work. Call the returned function when it has ended. */
  startBackground(session: string, stop: AbortController): () => void {
    const running = this.#background.get(session) ?? new Set()
    const one = { stop }
    this.#background.set(session, running.add(one))
    return () => {
      if (running.delete(one) && running.size === 0) this.#background.delete(session)
    }
  }

  /** Stops the background work of a session. */
  stopBackground(session: string): void {
    for (const { stop } of this.#background.get(session) ?? []) stop.abort()
  }

  /** Returns the texts of background handlers, once. */
  takeLate(session: string): readonly string[] {
    const late = this.#late.take(session) ?? []
    for (const each of late) each.isReceived = true
    return late.map(({ text }) => text)
  }

  /** A PermissionRequest hook ends the run. */
  interrupt(session: string, reason: string): void {
    this.#interrupts.set(session, reason)
  }

  /** Returns why a run is to end, once. */
  takeInterrupt(session: string): string | undefined {
    return this.#interrupts.take(session)
  }

  /** Stores the common fields of a call for its approval. */
  rememberCall(id: string, common: JsonObject): void {
    this.#calls.set(id, common)
  }

  recallCall(id: string): JsonObject | undefined {
    return this.#calls.get(id)
  }

  /** Whether a subagent continues because a hook requested it. */
  isContinued(call: string): boolean {
    return this.#continued.get(call) === true
  }

  noteContinued(call: string): void {
    this.#continued.set(call, true)
  }
}

/** A map with a maximum size, which drops the oldest entries. */
class Latest<T> {
  readonly #values = new Map<string, T>()

  get(key: string): T | undefined {
    return this.#values.get(key)
  }

  set(key: string, value: T): T {
    this.#values.delete(key)
    this.#values.set(key, value)
    for (const oldest of this.#values.keys()) {
      if (this.#values.size <= MAX_ENTRIES) break
      this.#values.delete(oldest)
    }
    return value
  }

  take(key: string): T | undefined {
    const value = this.#values.get(key)
    this.#values.delete(key)
    return value
  }
}
