import type { JsonObject } from '../../../state/json.ts'
import type { RanHandler } from './run-event.ts'

const MAX_KEPT = 1_000

type LateWords = { readonly text: string; isHeard: boolean }

/** A hook in the background wants the model to hear something now. */
export type Wake = {
  readonly session: string
  readonly words: string
  /** Whether it has: whatever happens in the session tells it first. */
  readonly isHeard: () => boolean
}

/** What has to be known of a conversation from one event to the next, in this process. Nothing of it decides anything twice. */
export class HookMemory {
  readonly #once = new Latest<Set<string>>()
  readonly #late = new Latest<LateWords[]>()
  readonly #beside = new Map<string, Set<{ readonly stop: AbortController }>>()
  readonly #interrupts = new Latest<string>()
  readonly #calls = new Latest<JsonObject>()
  readonly #continued = new Latest<true>()

  /** What has run already of what runs once in a session. */
  onceDone(session: string): Set<string> {
    return this.#once.get(session) ?? this.#once.set(session, new Set())
  }

  /** Follows a handler that nobody waits for. What it says is kept for the next event; `onWake` may see to it that there is one. */
  follow(
    session: string,
    late: Promise<RanHandler>,
    { stop, onWake }: { readonly stop: AbortController; readonly onWake: ((wake: Wake) => void) | undefined },
  ): void {
    const ended = this.startBeside(session, stop)
    void late.then(({ answer: { context, systemMessage, wakes } }) => {
      ended()
      if (stop.signal.aborted) return
      const said = [context, systemMessage, wakes].flatMap((text): LateWords[] =>
        text === undefined || text === '' ? [] : [{ text, isHeard: false }],
      )
      if (said.length > 0) (this.#late.get(session) ?? this.#late.set(session, [])).push(...said)
      const last = said.at(-1)
      if (wakes !== undefined && last !== undefined) onWake?.({ session, words: wakes, isHeard: () => last.isHeard })
    })
  }

  /** Something begins that nobody waits for. Gives what to call when it has ended. */
  startBeside(session: string, stop: AbortController): () => void {
    const running = this.#beside.get(session) ?? new Set()
    const one = { stop }
    this.#beside.set(session, running.add(one))
    return () => {
      if (running.delete(one) && running.size === 0) this.#beside.delete(session)
    }
  }

  /** Ends what runs beside a session. */
  endBeside(session: string): void {
    for (const { stop } of this.#beside.get(session) ?? []) stop.abort()
  }

  /** What handlers said that nobody waited for, once. */
  takeLate(session: string): readonly string[] {
    const late = this.#late.take(session) ?? []
    for (const words of late) words.isHeard = true
    return late.map(({ text }) => text)
  }

  /** A hook that was asked instead of a person wants the run to end. */
  interrupt(session: string, reason: string): void {
    this.#interrupts.set(session, reason)
  }

  /** Why a run is to end, once. */
  takeInterrupt(session: string): string | undefined {
    return this.#interrupts.take(session)
  }

  /** What every event of a run is told, for a question about this call. */
  rememberCall(id: string, common: JsonObject): void {
    this.#calls.set(id, common)
  }

  recallCall(id: string): JsonObject | undefined {
    return this.#calls.get(id)
  }

  /** Whether a subagent goes on because a hook wanted it to. */
  isContinued(call: string): boolean {
    return this.#continued.get(call) === true
  }

  noteContinued(call: string): void {
    this.#continued.set(call, true)
  }
}

/** A map that forgets what was put in first when there is too much. */
class Latest<T> {
  readonly #values = new Map<string, T>()

  get(key: string): T | undefined {
    return this.#values.get(key)
  }

  set(key: string, value: T): T {
    this.#values.delete(key)
    this.#values.set(key, value)
    for (const oldest of this.#values.keys()) {
      if (this.#values.size <= MAX_KEPT) break
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
