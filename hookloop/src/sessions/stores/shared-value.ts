import { exactJson, type Json } from '../../state/json.ts'
import { checkArgument } from '../../state/check-options.ts'
import { storeFailed } from './store.ts'

/** A change of a shared value. It may be called several times, so it must not have side effects. */
export type ValueChange = (value: Json | undefined, now?: number) => Json

const MAX_ATTEMPTS = 200
const MAX_PAUSE_MS = 20

/** The text of the changed value. */
export function changedText(
  text: string | undefined,
  change: ValueChange,
  now: number = Date.now(),
): { readonly text: string; readonly value: Json } {
  checkArgument('store.update', ['change', change], typeof change === 'function', 'a function of the value')
  const value = exactJson(change(text === undefined ? undefined : (JSON.parse(text) as Json), now), 'shared value')
  return { text: JSON.stringify(value), value }
}

/** Attempts a change until no other process interferes. `attempt` returns undefined if one did. */
export async function retryChange<T>(name: string, attempt: () => Promise<T | undefined>): Promise<T> {
  for (let i = 0; i < MAX_ATTEMPTS; i++) {
    const done = await attempt()
    if (done !== undefined) return done
    await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(MAX_PAUSE_MS, 1 + i)))
  }
  throw storeFailed(`The value "${name}" cannot be changed`, 'other processes change it all the time')
}

type Waiting = {
  readonly change: ValueChange
  readonly resolve: (value: Json) => void
  readonly reject: (error: unknown) => void
}
type Outcome = { readonly value: Json } | { readonly error: unknown }

/**
 * Joins the changes that this process makes to one value at the same time: they are applied in order and stored in one
 * write, so they do not compete with each other, only with those of other processes.
 */
export function joinChanges(
  update: (name: string, change: ValueChange) => Promise<Json>,
): (name: string, change: ValueChange) => Promise<Json> {
  const queues = new Map<string, Waiting[]>()
  const work = async (name: string, queue: Waiting[]): Promise<void> => {
    while (queue.length > 0) await applyAll(queue.splice(0), (change) => update(name, change))
    queues.delete(name)
  }
  return async (name, change) => {
    const { promise, resolve, reject } = Promise.withResolvers<Json>()
    const queue = queues.get(name)
    if (queue === undefined) {
      const first = [{ change, resolve, reject }]
      queues.set(name, first)
      void work(name, first)
    } else {
      queue.push({ change, resolve, reject })
    }
    return promise
  }
}

async function applyAll(batch: readonly Waiting[], update: (change: ValueChange) => Promise<Json>): Promise<void> {
  let outcomes: readonly Outcome[] = []
  let failure: { readonly error: unknown } | undefined
  try {
    await update((value, now) => {
      let current = value
      outcomes = batch.map(({ change }): Outcome => {
        try {
          return { value: (current = exactJson(change(current, now), 'shared value')) }
        } catch (error) {
          return { error } // of this change only
        }
      })
      if (current === undefined) throw (outcomes[0] as { readonly error: unknown }).error
      return current
    })
  } catch (error) {
    failure = { error }
  }
  for (const [i, { resolve, reject }] of batch.entries()) {
    const outcome = outcomes[i]
    if (outcome !== undefined && 'error' in outcome) reject(outcome.error)
    else if (failure !== undefined) reject(failure.error)
    else resolve(outcome!.value)
  }
}
