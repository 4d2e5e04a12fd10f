import { sameJson, type Json, type JsonObject } from '../../state/json.ts'
import { applyObject, diffObject } from '../../state/state-diff.ts'
import { pathId, rootPath } from '../../effects/keys.ts'
import type { EndRecord } from '../../effects/records.ts'
import type { SessionRecord } from './session-records.ts'

/**
 * Requests of models as their differences. Each request repeats the conversation and the descriptions of the tools, so it is
 * stored as what differs from the one before it: of the same agent or hook, since a process started or resumed the run.
 */
export class RequestDiffs {
  readonly #before = new Map<string, JsonObject>()

  /** The record as it is stored. Call it with every record, in order. */
  shorten<R extends SessionRecord>(record: R): R {
    return this.#follow(record, (before, request) => {
      const [{ messages: earlier, ...known }, { messages, ...rest }] = [before, request]
      const [old, list] = [listOf(earlier), listOf(messages)]
      let keep = 0
      while (keep < old.length && keep < list.length && sameJson(old[keep]!, list[keep]!)) keep++
      const short = { ...diffObject(known, rest, sameJson), keep, add: list.slice(keep) }
      return { stored: short, whole: request }
    })
  }

  /** The same record with its whole request. */
  restore<R extends SessionRecord>(record: R): R {
    return this.#follow(record, (before, short) => {
      const { keep, add, set, unset } = short
      const kept = listOf(before['messages']).slice(0, typeof keep === 'number' ? keep : 0)
      const whole = {
        ...applyObject(before, { set: set as JsonObject, unset: unset as never }),
        messages: [...kept, ...listOf(add)],
      }
      return { stored: whole, whole }
    })
  }

  #follow<R extends SessionRecord>(
    record: R,
    change: (before: JsonObject, request: JsonObject) => { readonly stored: JsonObject; readonly whole: JsonObject },
  ): R {
    if (record.t === 'input' || record.t === 'resume') this.#before.clear()
    if (record.t !== 'end' || record.request === undefined) return record
    const { path = rootPath, key, request }: EndRecord = record
    const of = `${pathId(path)} ${key.hook ?? ''}`
    const { stored, whole } = change(this.#before.get(of) ?? {}, request)
    this.#before.set(of, whole)
    return { ...record, request: stored }
  }
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? (value as readonly Json[]) : []
}
