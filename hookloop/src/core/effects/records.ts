import type { HookRecord } from '../state/execution.ts'
import { isMessage, type Message } from '../state/message.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import type { TimedLedgerEntry } from '../state/ledger.ts'
import { listOf, must, object, oneOf, optional, present, shapeOf, string, type Shape } from '../../values/shape.ts'
import type { StateChange, StateDiff } from '../state/state-diff.ts'
import type { StopRequest } from '../state/stop-request.ts'
import type { RunLimits } from '../state/stored-run.ts'
import type { Answer } from '../state/tool-call.ts'
import { errorCodes, type ErrorCode } from '../../errors.ts'
import type { FinalRecord } from '../state/execution.ts'
import type { EffectKey, EffectPath } from './keys.ts'
import type { RunEnd } from './run-time.ts'

/** Where a process works on a run, and with which limits. */
export type Circumstances = { readonly cwd?: string; readonly limits?: RunLimits }

/** An error as it is stored. */
export type ErrorText = { readonly code: ErrorCode; readonly message: string; readonly value?: Json }

/** A run starts. */
export type InputRecord = Circumstances & {
  readonly t: 'input'
  readonly at: number
  readonly run: string
  readonly message: Message
  readonly metadata?: JsonObject
  /** The id that the caller gave the input, so that the same request does not run twice. */
  readonly turn?: string
  /** The agent, if it is another one than that of the session. */
  readonly agent?: string
  /** The hooks in force. None of its guards may be missing when another process continues the run. */
  readonly hooks?: readonly HookRecord[]
}

/** An effect begins. It is stored before the effect happens, if it must not be repeated. */
export type BeginRecord = {
  readonly t: 'begin'
  readonly at: number
  readonly path?: EffectPath
  readonly key: EffectKey
  /** What is done: a call with its arguments, a question. */
  readonly input: Json
  /** Whether the effect may be performed again if it has no end. */
  readonly idempotent?: true
}

/** An effect has ended, with a value or an error. */
export type EndRecord = {
  readonly t: 'end'
  readonly at: number
  readonly path?: EffectPath
  readonly key: EffectKey
  readonly value?: Json
  readonly error?: ErrorText
  /** When it began, and a fingerprint of its input, if its begin is not stored. */
  readonly began?: number
  readonly input?: Json
}

/** A question is answered, by this process or another one. */
export type AnswerRecord = {
  readonly t: 'answer'
  readonly at: number
  readonly approval: string
  readonly answer: Answer
  readonly by?: string
}

/** The run, or a subagent in it, noticed at its n-th check since its last checkpoint that it must end. */
export type CancelRecord = {
  readonly t: 'cancel'
  readonly at: number
  readonly path?: EffectPath
  readonly check: number
  readonly end: RunEnd
  readonly stop?: StopRequest
  /** The keys of the hooks that were running when the run ended: their signal has aborted. */
  readonly during?: readonly string[]
}

/** No process works on the run until it is resumed. What hooks at `onPause` changed is applied when the open step closes. */
export type PauseRecord = {
  readonly t: 'pause'
  readonly at: number
  /** The step in progress, or the last one. */
  readonly step: number
  /** The ids of the questions that it waits for. */
  readonly pending: readonly string[]
  readonly change?: StateChange
  /** What hooks have decided in the open step, to be shown. It is decided again when the step runs again, except at `onPause`. */
  readonly ledger?: readonly TimedLedgerEntry[]
}

/** A process continues the run. With `ends`, nothing new begins: there is new input. */
export type ResumeRecord = Circumstances & {
  readonly t: 'resume'
  readonly at: number
  /** The step in progress, or the last one. Missing if the run had not started. */
  readonly step?: number
  readonly hooks: readonly HookRecord[]
  readonly change?: StateChange
  /** What hooks at `onResume` have decided. */
  readonly ledger?: readonly TimedLedgerEntry[]
  readonly ends?: true
}

/** A step of the run, or of a subagent in it, is closed. Its effects are part of the state from now on. */
export type StepRecord = {
  readonly t: 'step'
  readonly at: number
  readonly path?: EffectPath
  readonly change: StateDiff
  readonly ledger?: readonly TimedLedgerEntry[]
  /** The subagent has ended in this step. */
  readonly ended?: number
}

/** The run has ended. */
export type EndOfRunRecord = {
  readonly t: 'final'
  readonly at: number
  /** The last step. */
  readonly ended: number
  readonly change: StateDiff
  readonly ledger?: readonly TimedLedgerEntry[]
  /** How it ended, if its input opened no execution, which would have it. */
  readonly final?: FinalRecord
}

/** What happens in a run, one record each. The state of the run is a fold over them. */
export type RunRecord =
  | InputRecord
  | BeginRecord
  | EndRecord
  | AnswerRecord
  | CancelRecord
  | PauseRecord
  | ResumeRecord
  | StepRecord
  | EndOfRunRecord

const MAX_DATE_MS = 8.64e15
export const time = must(
  (at) => typeof at === 'number' && at >= 0 && at <= MAX_DATE_MS,
  'must be a time in milliseconds',
)
const count = must((value) => Number.isSafeInteger(value) && (value as number) >= 0, 'must be a whole number from 0 up')
const circumstances = { cwd: optional(string), limits: optional(object) }
const kinds = ['model', 'attempt', 'tool', 'child', 'ask', 'infer', 'hook', 'sleep', 'timeout']
const key = shapeOf({
  step: count,
  kind: oneOf(...kinds),
  call: optional(string),
  trigger: optional(string),
  hook: optional(string),
  n: must((n) => typeof n === 'string' || Number.isSafeInteger(n), 'must be a number or a text'),
})
const path = optional(listOf(shapeOf({ step: count, call: string, n: count, agent: string })))
const error = shapeOf({
  code: must((code) => typeof code === 'string' && Object.hasOwn(errorCodes, code), 'must be a known code'),
  message: string,
})
const hooks = listOf(
  shapeOf({
    name: string,
    mode: oneOf('transform', 'guard', 'observe'),
    on: optional(listOf(string)),
    code: optional(string),
    tools: optional(listOf(string)),
  }),
)
const ledger = optional(listOf(shapeOf({ hook: string, trigger: string, mode: string, step: count })))
const endShape = shapeOf({ at: time, path, key, error: optional(error), began: optional(time) })
const messages = optional(listOf(must(isMessage, 'must be a message')))
const stateChange = shapeOf({
  metadata: optional(object),
  removed: optional(listOf(string)),
  appended: messages,
  messages,
  systemPrompt: optional(string),
  responseFormat: optional(must((format) => format === null || isJsonObject(format), 'must be an object or null')),
})
const beginShape = shapeOf({ at: time, path, key, input: present })
const call = shapeOf({ key: shapeOf({ call: string }), input: shapeOf({ name: string, args: present }) })
const question = shapeOf({
  id: string,
  message: string,
  by: string,
  asks: listOf(shapeOf({ by: string, message: string })),
  hash: string,
  toolCall: shapeOf({ id: string, name: string, args: present }),
})
const inputShapes: { readonly [kind in EffectKey['kind']]?: Shape } = {
  tool: call,
  child: call,
  ask: shapeOf({ input: question }),
}
const answer = must(
  (value) =>
    value === 'allow' || (isJsonObject(value) && (isJsonObject(value['allow']) || typeof value['block'] === 'string')),
  `must be 'allow', { allow: arguments } or { block: reason }`,
)

/** Checks of records that are read back. */
export const runRecordShapes: { readonly [t in RunRecord['t']]: Shape } = {
  input: shapeOf({
    at: time,
    run: string,
    message: must(isMessage, 'must be a message'),
    metadata: optional(object),
    turn: optional(string),
    agent: optional(string),
    hooks: optional(hooks),
    ...circumstances,
  }),
  begin: (value, where) => {
    const problem = beginShape(value, where)
    return problem ?? inputShapes[(value as unknown as BeginRecord).key.kind]?.(value, where)
  },
  end: (value, where) =>
    endShape(value, where) ??
    (isJsonObject(value) && (value['value'] === undefined) === (value['error'] === undefined)
      ? 'it must have a value or an error'
      : undefined),
  answer: shapeOf({ at: time, approval: string, answer }),
  cancel: shapeOf({
    at: time,
    path,
    check: count,
    end: oneOf('cancel', 'limit'),
    stop: optional(object),
    during: optional(listOf(string)),
  }),
  pause: shapeOf({ at: time, step: count, pending: listOf(string), change: optional(stateChange), ledger }),
  resume: shapeOf({ at: time, step: optional(count), hooks, change: optional(stateChange), ledger, ...circumstances }),
  step: shapeOf({ at: time, path, ended: optional(count), change: object, ledger }),
  final: shapeOf({ at: time, ended: count, change: object, ledger, final: optional(object) }),
}

/** A run that has not ended, in a snapshot or a saved run. Its records are checked one by one. */
export const openRunShape = shapeOf({
  input: object,
  hooks,
  at: time,
  since: time,
  waits: listOf(shapeOf({ from: time, to: optional(time) })),
  pending: optional(listOf(string)),
  records: listOf(object),
})
