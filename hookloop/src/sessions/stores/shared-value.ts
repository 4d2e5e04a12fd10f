import { exactJson, type Json } from '../../state/json.ts'
import { AgentError } from '../../errors.ts'
import { storeFailed } from './store.ts'

/** A change of a shared value. It may be called several times, so it must not have side effects. */
export type ValueChange = (value: Json | undefined) => Json

const MAX_ATTEMPTS = 200
const MAX_PAUSE_MS = 20

/** The text of the changed value. */
export function changedText(
  text: string | undefined,
  change: ValueChange,
): { readonly text: string; readonly value: Json } {
  const value = exactJson(change(text === undefined ? undefined : (JSON.parse(text) as Json)), 'shared value')
  return { text: JSON.stringify(value), value }
}

/** Attempts a change until no other process interferes. `attempt` returns undefined if one did. */
export async function retryChange<T>(name: string, attempt: () => T | undefined | Promise<T | undefined>): Promise<T> {
  for (let i = 0; i < MAX_ATTEMPTS; i++) {
    const done = await attempt()
    if (done !== undefined) return done
    await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(MAX_PAUSE_MS, 1 + i)))
  }
  throw storeFailed(`The value "${name}" cannot be changed`, 'other processes change it all the time')
}

/** The same for a lock that may be taken. */
export function unlessBusy<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof AgentError && error.code === 'SESSION_BUSY') return undefined
    throw error
  }
}
