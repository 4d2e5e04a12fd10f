import { AgentState } from '../state/agent-state.ts'
import { isJsonObject, sameJson, toJson, type Json, type JsonObject } from '../../values/json.ts'
import type { LedgerEntry } from '../state/ledger.ts'
import { applyObject, jsonChanges } from '../state/state-diff.ts'
import type { AgentPath } from '../state/subagent.ts'
import { shorten } from '../../values/text.ts'
import { AgentError } from '../../errors.ts'
import { passes, Suspended, Unanswered, type Done, type Effect, type Tape } from './journal.ts'
import { pathId, type EffectKey, type EffectPath } from './keys.ts'
import type { Entry, RunLog, Scope } from './log.ts'
import type { EndOfRunRecord, RunRecord, StepRecord } from './records.ts'

/** Strict: everything must be as recorded. Otherwise other hooks decide, and what is recorded happens all the same. */
export type TapeMode = 'strict' | 'whatIf'

/** Where a live run with other hooks would do something that is not recorded. */
export type Divergence = Pick<LedgerEntry, 'step' | 'trigger' | 'call' | 'path'> & {
  readonly why: string
  /** A hook whose effect is not recorded. */
  readonly hook?: string
}

/** A step: the decisions that are recorded, those of the replay, and where it diverges. */
export type ReplayedStep = { readonly was: Ledger; readonly would: Ledger; readonly divergences: readonly Divergence[] }

type Ledger = readonly LedgerEntry[]
type Closing = StepRecord | EndOfRunRecord
type Closed = readonly [closing: Closing, state: AgentState]

/**
 * The records of a run, one step after the other: the effects of a step are known before it is driven. A replay performs
 * nothing, except subagents, which run again over their own records.
 */
export class RecordTape implements Tape {
  readonly steps: ReplayedStep[] = []
  readonly #log: RunLog
  readonly #records: readonly RunRecord[]
  readonly #isStrict: boolean
  #at = 0
  #divergences: Divergence[] = []
  /** The checkpoints of subagents in the open step, and how many of them the replay has passed. */
  #children = new Map<string, { readonly closings: StepRecord[]; passed: number }>()

  /** `records` are those after the input of the run. The log must not keep the checkpoints of subagents. */
  constructor(log: RunLog, records: readonly RunRecord[], mode: TapeMode) {
    this.#log = log
    this.#records = records
    this.#isStrict = mode === 'strict'
    this.#loadStep()
  }

  async perform<T extends Json>(
    { path }: Scope,
    effect: Effect,
    entry: Entry | undefined,
    act: () => T | Promise<T>,
  ): Promise<Done> {
    const { key } = effect
    if (entry === undefined) throw this.#missing(key, path)
    this.#compareInput(effect, entry)
    if (key.kind === 'child' && effect.unknown === undefined) return this.#performChild(entry, act)
    if (entry.end !== undefined) return entry.end
    throw key.kind === 'ask' ? new Suspended([entry.begin!.input as never]) : this.#missing(key, path)
  }

  #compareInput({ key, input }: Effect, { begin, end, scope }: Entry): void {
    const recorded = begin?.input ?? end?.input
    const isCompared = key.kind === 'model' || (this.#isStrict && key.kind !== 'ask') // what is asked is in the key
    if (recorded === undefined || !isCompared) return
    const now = toJson(input())
    if (sameJson(recorded, now)) return
    if (this.#isStrict) throw diverged(`${nameOf(key)} has another input: ${between(recorded, now)}`)
    this.#note(scope.path, { ...key, trigger: 'beforeInference' }, 'the model would get a different request')
  }

  async #performChild<T extends Json>({ key, scope, end }: Entry, act: () => T | Promise<T>): Promise<Done> {
    try {
      const value = await act()
      if (end === undefined) return { value, at: 0 } // the process died before it was stored
      const isSame = sameJson(value, end.value ?? null)
      if (this.#isStrict && !isSame) throw diverged(`${nameOf(key)} has another result`)
      const output = (of: Json | undefined): Json => (of as JsonObject)['execution']!
      if (!isSame && !sameJson(output(value), output(end.value)))
        this.#note(scope.path, { ...key, trigger: 'onSubagentStop' }, 'a different output would be used')
    } catch (thrown) {
      if (this.#isStrict || end === undefined || !passes(thrown)) throw thrown
    }
    return end
  }

  checkpoint(scope: Scope, record: Closing, state: AgentState): AgentState {
    if (record.t === 'step' && scope.path.length > 0) return this.#closeChild(scope, record, state)
    const closing = this.#closing
    if (closing === undefined) throw incomplete('the step was not closed')
    if (this.#isStrict) compareLedgers(closing, record)
    if (closing.t !== record.t) {
      const why = `the run would ${closing.t === 'step' ? 'stop' : 'continue'}`
      this.#note([], { step: state.stepCount, trigger: 'onStop' }, why)
      throw diverged(why)
    }
    return this.#closeStep(closing, { state, ledger: record.ledger ?? [], record })
  }

  continues({ id, path }: Scope): boolean | undefined {
    if (this.#isStrict) return undefined
    const steps = this.#children.get(id)
    const closing = path.length === 0 ? this.#closing : steps?.closings[steps.passed]
    return closing && closing.t === 'step' && closing.ended === undefined
  }

  skip(thrown: unknown, open: { readonly state: AgentState; readonly ledger: Ledger }): ReturnType<Tape['skip']> {
    const closing = this.#closing
    const isEnd = thrown instanceof AgentError && passes(thrown)
    if (closing === undefined && (isEnd || thrown instanceof Suspended)) this.#leaveOpen(open.ledger, isEnd)
    if (this.#isStrict || closing === undefined || !isEnd) return undefined
    const { metadata: set, removed: unset } = closing.change as { metadata?: JsonObject; removed?: string[] }
    const metadata = applyObject(open.state.metadata, { set, unset }) // hooks in the rest of the step have not run
    const state = this.#closeStep(closing, { ...open, state: AgentState.patch(open.state, { metadata }) })
    return closing.t === 'step' ? { state } : { state, final: closing.final ?? state.execution!.final! }
  }

  /** The run waits in its last step: what was decided in it is known. */
  #leaveOpen(would: Ledger, goesOn: boolean): void {
    const last = this.#records.at(-1)
    if (last?.t !== 'pause') return
    const asked = [...this.#log.root.entries.values()].find(({ key, end }) => key.kind === 'ask' && end === undefined)
    if (goesOn && asked !== undefined && !this.#isStrict)
      this.#note([], asked.key, 'the run would not wait for an answer')
    this.steps.push({ was: last.ledger ?? [], would, divergences: this.#divergences })
  }

  /** The record that closes the open step. Undefined if the record of the run ends before. */
  get #closing(): Closing | undefined {
    const record = this.#records[this.#at]
    return record?.t === 'final' || (record?.t === 'step' && record.path === undefined) ? record : undefined
  }

  /** What is recorded wins, except for the metadata that other hooks have set. */
  #closeStep(
    closing: Closing,
    now: { readonly state: AgentState; readonly ledger: Ledger; record?: Closing },
  ): AgentState {
    this.#log.apply(closing)
    const recorded = this.#log.root.state!
    if (now.record !== undefined) this.#compareStates([closing, recorded], [now.record, now.state])
    this.steps.push({ was: closing.ledger ?? [], would: now.ledger, divergences: this.#divergences })
    this.#at++
    const isResumed = this.#loadStep()
    const state = this.#isStrict ? recorded : AgentState.patch(recorded, { metadata: now.state.metadata })
    if (!isResumed || state.execution?.status !== 'running') return state
    return AgentState.patchExecution(state, { hooks: this.#log.hooks })
  }

  /** Most changes are recorded in the same way. Where they are not, the states may be the same all the same. */
  #compareStates(...both: readonly [recorded: Closed, now: Closed]): void {
    const [one, other] = both.map(([{ change, ...rest }]) => toJson([change, 'final' in rest ? rest.final : null]))
    if (sameJson(one!, other!)) return
    const [was, is] = both.map(([closing, state]) =>
      toJson({ ...state.toJSON(), ...('final' in closing && { final: closing.final }) }),
    )
    for (const { path, before = null, after = null } of jsonChanges('', was, is)) {
      if (path === 'execution.hooks' && sameJson(deciding(before), deciding(after))) continue
      if (this.#isStrict) throw diverged(`the state has another ${path}: ${between(before, after)}`)
      const place = { step: both[1][1].stepCount, trigger: 'onStop' }
      if (/^(messages|systemPrompt|responseFormat)/.test(path))
        this.#note([], place, 'the model would get a different conversation')
      if (/(^|\.)final(\.reason)?$/.test(path)) this.#note([], place, 'the run would stop for a different reason')
    }
  }

  /** Follows the records of a step. Returns whether another process has continued the run in it. */
  #loadStep(): boolean {
    let isResumed = false
    this.#divergences = []
    this.#children = new Map()
    for (; this.#at < this.#records.length && this.#closing === undefined; this.#at++) {
      const record = this.#records[this.#at]!
      isResumed ||= record.t === 'resume'
      this.#log.apply(this.#withPart(record))
    }
    return isResumed
  }

  /** Records of a subagent belong to its open step. */
  #withPart(record: RunRecord): RunRecord {
    if (!('path' in record) || record.path === undefined) return record
    const id = pathId(record.path)
    let steps = this.#children.get(id)
    if (steps === undefined) this.#children.set(id, (steps = { closings: [], passed: 0 }))
    if (record.t === 'step') steps.closings.push(record)
    return { ...record, path: partOf(record.path, steps.closings.length) }
  }

  #closeChild(scope: Scope, record: StepRecord, state: AgentState): AgentState {
    const steps = this.#children.get(scope.id)
    const closing = steps?.closings[steps.passed]
    if (this.#isStrict && closing !== undefined) compareLedgers(closing, record)
    if (steps !== undefined) scope.follow(this.#log.scopes.get(pathId(partOf(scope.path, ++steps.passed))))
    return Object.assign(scope, { state, at: record.at, isOver: record.ended !== undefined }).state
  }

  #missing(key: EffectKey, path: EffectPath): Error {
    const { kind, hook } = key
    if (this.#isStrict || this.#closing === undefined) {
      const what = `${nameOf(key)} is not recorded`
      return this.#closing === undefined ? incomplete(what) : diverged(what)
    }
    const isOfHook = kind === 'hook' || kind === 'infer'
    const why = isOfHook ? `the record has no result of "${hook}"` : (unrecorded[kind] ?? 'the run would wait')
    const trigger = key.trigger ?? (kind === 'model' ? 'beforeInference' : 'beforeToolUse')
    this.#note(path, { ...key, trigger, hook: isOfHook ? hook : undefined }, why)
    return isOfHook ? new Unanswered(why) : diverged(why)
  }

  #note(
    within: EffectPath,
    place: { [K in 'step' | 'trigger' | 'call' | 'hook']?: EffectKey[K] | undefined },
    why: string,
  ): void {
    const path: AgentPath = within.map(({ agent, step, call }) => ({ agent, step, call }))
    const { step, trigger, call, hook } = place
    this.#divergences.push(
      toJson({ step, trigger, call, hook, path: path.length > 0 ? path : undefined, why }) as never,
    )
  }
}

const unrecorded: { readonly [kind: string]: string } = {
  model: 'the model would be called',
  tool: 'the call would run',
  child: 'the call would run',
  ask: 'an approver would be asked',
}

function partOf(path: EffectPath, part: number): EffectPath {
  return part === 0 ? path : [...path.slice(0, -1), { ...path.at(-1)!, part }]
}

/** What an entry of the ledger says: without times, and without the place where the hook is defined. */
export type Opinion = Omit<LedgerEntry, 'definedAt' | 'warnings' | 'bookkeeping'>

const outside: ReadonlySet<string> = new Set(['onSessionStart', 'onSessionEnd', 'onPause', 'onResume'])

/** The decisions in a ledger, without those of observers and of hooks in shadow mode. What happens outside of steps is not replayed. */
export function opinionsIn(ledger: Ledger): readonly Opinion[] {
  return ledger.flatMap((entry) => {
    const { step, trigger, hook, mode, call, decision, message, value, changes, error, code, path, tool } = entry
    const saysNothing = decision === undefined && changes === undefined && error === undefined
    const isIdle = entry.shadow === true || mode === 'observe' || outside.has(trigger)
    if (isIdle || saysNothing) return []
    return [
      toJson({ step, trigger, hook, mode, call, decision, message, value, changes, error, code, path, tool }) as never,
    ]
  })
}

function compareLedgers(recorded: Closing, now: Closing): void {
  const [was, would] = [opinionsIn(recorded.ledger ?? []), opinionsIn(now.ledger ?? [])]
  const i = [...was, ...would].findIndex((_, at) => !sameJson(was[at] ?? null, would[at] ?? null))
  if (i === -1) return
  const { step, trigger, call, path = [] } = (was[i] ?? would[i])!
  const agents = path.map(({ agent }) => `${agent}, `).join('')
  const place = `${agents}step ${step + 1}, ${trigger}${call === undefined ? '' : `, call "${call}"`}`
  throw diverged(`at ${place}, other hooks decide: ${between(saidBy(was[i]), saidBy(would[i]))}`)
}

function saidBy({ hook, decision, message, error, changes }: Partial<Opinion> = {}): Json {
  return hook === undefined ? 'nothing' : toJson({ hook, decision, message, error, changes })
}

const MAX_VALUE = 200

function between(was: Json, is: Json): string {
  return `${shorten(JSON.stringify(was), MAX_VALUE)} was recorded, and it is ${shorten(JSON.stringify(is), MAX_VALUE)}`
}

/** The hooks in a state that decide something. A replay has no observers. */
function deciding(hooks: Json): Json {
  return Array.isArray(hooks) ? hooks.filter((each) => !isJsonObject(each) || each['mode'] !== 'observe') : []
}

function nameOf({ step, kind, call, trigger, hook = call }: EffectKey): string {
  const at = trigger === undefined ? '' : ` at ${trigger}`
  const what = kind === 'model' ? 'model call' : kind
  return `the ${what}${hook === undefined ? '' : ` "${hook}"`}${at} in step ${step + 1}`
}

function diverged(what: string): AgentError {
  return new AgentError('REPLAY_DIVERGED', `The replay differs from the record: ${what}.`)
}

function incomplete(what: string): AgentError {
  return new AgentError('REPLAY_INCOMPLETE', `The record ends here: ${what}.`)
}
