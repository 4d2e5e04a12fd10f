import type { Json } from '../../values/json.ts'
import { fakeClock, type FakeClock } from '../../testing/fake-clock.ts'
import { Effects } from './effects.ts'
import { Journal, type Effect, type RecordSink } from './journal.ts'
import type { EffectKey } from './keys.ts'
import { RunLog } from './log.ts'
import type { RunRecord } from './records.ts'
import { RunTime } from './run-time.ts'

export function keyOf(call: string, kind: EffectKey['kind'] = 'tool', n: number | string = 0): EffectKey {
  return { step: 0, kind, call, n }
}

export function effectOf(key: EffectKey, more: Omit<Partial<Effect>, 'key'> = {}): Effect {
  return { key, input: () => null, ...more }
}

/** A process that works on a run. `records` are all that were made, `stored` those that another process would find. */
export type Process = {
  readonly effects: Effects
  readonly log: RunLog
  readonly clock: FakeClock
  readonly records: RunRecord[]
  readonly stored: RunRecord[]
  readonly cancel: () => void
}

/** A process that starts a run, or continues it over the records of another one. */
export function processOf(
  loaded: readonly RunRecord[] = [],
  { clock = fakeClock({ startAt: 1000 }), flush }: { readonly clock?: FakeClock; readonly flush?: () => void } = {},
): Process {
  const log = new RunLog()
  for (const record of loaded) log.apply(structuredClone(record))
  const records: RunRecord[] = []
  const stored: RunRecord[] = []
  const sink: RecordSink = {
    append: (record) => void records.push(record),
    flush: () => {
      flush?.()
      stored.push(...records.slice(stored.length))
    },
    flushSoon: () => undefined,
  }
  const controller = new AbortController()
  const journal = new Journal(log, { clock, sink, isNew: loaded.length === 0 })
  const time = new RunTime(clock, controller.signal)
  const now = clock.now()
  const effects = new Effects({ journal, scope: log.root, time, emit: undefined, run: 'run', now })
  return { effects, log, clock, records, stored, cancel: () => controller.abort() }
}

/** Performs an effect that notes that it was done. */
export function doing(
  done: string[],
  { effects }: Pick<Process, 'effects'>,
  effect: Effect,
  value: Json = 'done',
): Promise<Json> {
  return effects.perform<Json>(effect, () => {
    done.push(effect.key.call ?? '')
    return value
  })
}
