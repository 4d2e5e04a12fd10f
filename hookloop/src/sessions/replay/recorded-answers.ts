import { hookOfCall } from '../../agent/model/hook-infer.ts'
import { sameJson, toJson, type Json } from '../../state/json.ts'
import { timedOut, type Effect, type Effects, type TimeLimit, type Waited } from '../../effects/effects.ts'
import { RunTime } from '../../effects/run-time.ts'
import { MAX_TIMER_MS } from '../../system/timeout.ts'
import { Unanswered } from '../../hooks/run-hooks.ts'
import { repeatedKey, resultOf, type EndEntry, type RecordEntry } from '../../effects/recording.ts'
import type { RecordedEvent } from './event-recorder.ts'

/** The longest time that a hook may take in a replay, whatever its own timeout. */
const MAX_WAIT_MS = 60_000

type Asked = { readonly input: Json; outcome: EndEntry | undefined; isUsed?: boolean }

/** All recorded results, for hooks that may ask for them in another order, or for others. */
export class RecordedAnswers {
  /** A key may occur again in another segment of a session. */
  readonly #asked = new Map<string, Asked[]>()
  readonly #timeouts = new Map<string, Waited>()

  constructor(entries: readonly RecordEntry[]) {
    for (const entry of entries) {
      if (entry.type === 'timeout') this.#timeouts.set(entry.key, entry)
      if (entry.type === 'begin') {
        const before = this.#asked.get(entry.key) ?? []
        this.#asked.set(entry.key, [...before, { input: entry.input, outcome: undefined }])
      }
      const last = entry.type === 'end' ? this.#asked.get(entry.key)?.at(-1) : undefined
      if (last !== undefined && entry.type === 'end') last.outcome = entry
    }
  }

  /** The recorded result for this key and input, if there is one. */
  find(key: string, input: Json): Asked['outcome'] {
    for (let times = 1; ; times++) {
      const asked = this.#asked.get(repeatedKey(key, times))
      if (asked === undefined) return undefined
      const same = asked.filter((each) => each.outcome !== undefined && sameJson(each.input, input))
      const next = same.find((each) => each.isUsed !== true) ?? same.at(-1)
      if (next === undefined) continue
      next.isUsed = true
      return next.outcome
    }
  }

  timeout(key: string): Waited | undefined {
    return this.#timeouts.get(repeatedKey(key, 1))
  }
}

/** Effects for hooks in a replay: recorded results are returned, and nothing is performed. */
export class AnsweredEffects implements Effects {
  readonly time = new RunTime(undefined, undefined)
  readonly emit = undefined
  readonly run = ''
  /** Hooks that asked for something that was not recorded. */
  readonly unanswered: string[] = []
  /** By hook: rejects when it asks a model something that was not recorded. It is not waited for any longer then. */
  readonly #abandoned = new Map<string, PromiseWithResolvers<never>>()
  readonly #answers: RecordedAnswers
  readonly #event: RecordedEvent

  constructor(answers: RecordedAnswers, event: RecordedEvent) {
    this.#answers = answers
    this.#event = event
  }

  async perform<T extends Json>(effect: Effect): Promise<T> {
    const end = this.#answers.find(effect.key, toJson(effect.input()))
    if (end === undefined) {
      const place = `/${this.#event.trigger}/`
      const hook = effect.kind === 'inference' ? hookOfCall(effect.key) : effect.key
      this.unanswered.push(hook.slice(hook.indexOf(place) + place.length))
      if (effect.kind !== 'inference') return Object.freeze({}) as T // the outcome of a hook that decides nothing
      this.#abandon(hook).reject(new Unanswered(effect.key))
      return new Promise<T>(() => undefined)
    }
    return resultOf<T>(end)
  }

  get signal(): AbortSignal {
    return this.time.signal
  }

  async withTimeout<T>(work: PromiseLike<T>, time: TimeLimit): Promise<T> {
    const key = time.key()
    const fired = this.#answers.timeout(key)
    const limit = Math.min(time.ms, MAX_WAIT_MS, MAX_TIMER_MS)
    let timer: NodeJS.Timeout | undefined
    const over = new Promise<never>((_resolve, reject) => {
      if (fired === undefined) timer = setTimeout(() => reject(timedOut(key, { ms: limit })), limit)
      else reject(timedOut(key, fired))
    })
    try {
      return await (fired === undefined
        ? Promise.race([work, over, this.#abandon(hookOf(key)).promise])
        : Promise.race([over, work]))
    } finally {
      clearTimeout(timer)
    }
  }

  #abandon(hook: string): PromiseWithResolvers<never> {
    const known = this.#abandoned.get(hook)
    if (known !== undefined) return known
    const made = Promise.withResolvers<never>()
    made.promise.catch(() => undefined)
    this.#abandoned.set(hook, made)
    return made
  }

  async sleep(): Promise<void> {}

  scope(): Effects {
    return this
  }

  child(): Effects {
    return this
  }

  join(): void {}

  ended(): undefined {}

  now(): number {
    return this.#event.host.now
  }

  newId(): string {
    return 'replay'
  }
}

/** The hook that a timeout belongs to. */
function hookOf(key: string): string {
  return key.slice(0, key.lastIndexOf('/'))
}
