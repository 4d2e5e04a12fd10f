import { exactJson, type Json } from '../../values/json.ts'
import { storeFailed } from './store.ts'

/** A change of a shared value. It may be called several times, so it must not have side effects. */
export type ValueChange = (value: Json | undefined, now?: number) => Json

/** A shared value in a database: its text and the time, and a write that is refused if the text has changed since. */
export type StoredValue = {
  read(): Promise<{ readonly text: string | null; readonly now: number }>
  write(text: string, before: string | null): Promise<boolean>
}

type Waiting = { readonly change: ValueChange; readonly done: PromiseWithResolvers<Json> }

const MAX_ATTEMPTS = 200
const MAX_PAUSE_MS = 20

/**
 * Changes shared values. Changes that this process makes to one value at the same time are applied in order and stored in one
 * write, so they do not compete with each other, only with those of other processes.
 */
export class SharedValues {
  readonly #waiting = new Map<string, Waiting[]>()
  readonly #valueOf: (name: string) => StoredValue

  constructor(valueOf: (name: string) => StoredValue) {
    this.#valueOf = valueOf
  }

  update(name: string, change: ValueChange): Promise<Json> {
    const waiting = { change, done: Promise.withResolvers<Json>() }
    const queue = this.#waiting.get(name)
    if (queue !== undefined) {
      queue.push(waiting)
    } else {
      this.#waiting.set(name, [waiting])
      void this.#work(name)
    }
    return waiting.done.promise
  }

  async #work(name: string): Promise<void> {
    const queue = this.#waiting.get(name)!
    while (queue.length > 0) {
      const batch = queue.splice(0)
      try {
        const settle = await changeTogether(name, this.#valueOf(name), batch)
        settle()
      } catch (error) {
        for (const { done } of batch) done.reject(error)
      }
    }
    this.#waiting.delete(name)
  }
}

/** Attempts changes until no other process interferes. Returns what tells the callers. */
async function changeTogether(name: string, stored: StoredValue, batch: readonly Waiting[]): Promise<() => void> {
  for (let i = 0; i < MAX_ATTEMPTS; i++) {
    const { text, now } = await stored.read()
    let value = text === null ? undefined : (JSON.parse(text) as Json)
    const settled = batch.map(({ change, done }) => {
      try {
        const result = (value = exactJson(change(value, now), 'shared value'))
        return () => done.resolve(result)
      } catch (error) {
        return () => done.reject(error) // of this change only
      }
    })
    const next = value === undefined ? null : JSON.stringify(value)
    if (next === null || next === text || (await stored.write(next, text)))
      return () => settled.forEach((tell) => tell())
    await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(MAX_PAUSE_MS, 1 + i)))
  }
  throw storeFailed(`The value "${name}" cannot be changed`, 'other processes change it all the time')
}
