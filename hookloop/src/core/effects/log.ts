import { AgentState } from '../state/agent-state.ts'
import type { HookRecord } from '../state/execution.ts'
import { isJsonObject, type Json } from '../../values/json.ts'
import type { TimedLedgerEntry } from '../state/ledger.ts'
import { applyChange, applyDiff, type StateChange } from '../state/state-diff.ts'
import type { Answer, Approval, ToolExecution } from '../state/tool-call.ts'
import { addTokens, addUsage, noTokens, noUsage, type TokenUsage, type Usage } from '../state/usage.ts'
import { isWithin, keyId, pathId, rootPath, type EffectKey, type EffectPath } from './keys.ts'
import type {
  BeginRecord,
  CancelRecord,
  EndRecord,
  InputRecord,
  PauseRecord,
  RunRecord,
  StepRecord,
} from './records.ts'

/** An effect of the open step. */
export type Entry = {
  readonly id: string
  readonly scope: Scope
  readonly key: EffectKey
  /** When it began and when it ended, among all effects. */
  readonly seq: number
  endSeq?: number
  begin?: BeginRecord
  end?: EndRecord
  /** Whether the run has asked for it since it was loaded. */
  isRead: boolean
  /** Whether it had ended when the run last waited. */
  isSettled?: boolean
}

/** The run, or a subagent in it: its state at its last checkpoint, and the effects since then. */
export class Scope {
  readonly path: EffectPath
  readonly id: string
  /** Undefined: it has no checkpoint yet. */
  state: AgentState | undefined
  /** Of a subagent: whether it has ended, although its parent may not know it yet. */
  isOver = false
  /** The time of its last checkpoint. */
  at = 0
  readonly entries = new Map<string, Entry>()
  /** Of a subagent: its ledger up to its last checkpoint. */
  ledger: readonly TimedLedgerEntry[] = []
  cancel: CancelRecord | undefined
  /** Whether a timeout is recorded since its last checkpoint. */
  hasTimeouts = false

  constructor(path: EffectPath, id: string) {
    this.path = path
    this.id = id
  }

  /** Whether something of the open step is done: a model has answered, or a call has begun. */
  get hasBegun(): boolean {
    for (const { key } of this.entries.values()) if (key.kind === 'model' || isCall(key)) return true
    return false
  }

  add(entry: Entry): void {
    this.entries.set(entry.id, entry)
    if (entry.key.kind === 'timeout') this.hasTimeouts = true
  }

  find(key: EffectKey): Entry | undefined {
    return this.entries.size === 0 ? undefined : this.entries.get(keyId(key))
  }

  /** The first and the last attempt at a call, or run of its subagent, if it has begun. */
  begun(call: string): { readonly first: Entry; readonly last: Entry } | undefined {
    let [first, last]: Entry[] = []
    for (const entry of this.entries.values()) {
      if (entry.key.call !== call || !isCall(entry.key)) continue
      first ??= entry
      last = entry
    }
    return first && last && { first, last }
  }

  /** Takes note of effects that nothing asks for any more. */
  readAll(isRead: (key: EffectKey) => boolean): void {
    for (const entry of this.entries.values()) if (isRead(entry.key)) entry.isRead = true
  }

  /** The answers to questions about a call, and the call that was shown. */
  answersAbout(call: string): readonly { readonly asked: { readonly args: Json }; readonly answer: Answer }[] {
    return this.#about(call).flatMap(({ key, begin, end }) => {
      if (key.kind !== 'ask' || begin === undefined || end?.value === undefined) return []
      return [{ asked: (begin.input as unknown as Approval).toolCall, answer: end.value as Answer }]
    })
  }

  /** Whether hooks knew how a call ends when the run waited last: it had ended, or its last question was blocked. */
  knewEndOf(call: string): boolean {
    const { last } = this.begun(call) ?? {}
    if (last !== undefined) return last.isSettled === true
    return this.#about(call).findLast(({ key }) => key.kind === 'ask')?.isSettled === true
  }

  #about(call: string): readonly Entry[] {
    return [...this.entries.values()].filter(({ key }) => key.call === call)
  }

  /** In a replay: continues with the effects of the next step of a subagent. */
  follow(next: Scope | undefined): void {
    this.clear()
    for (const entry of next?.entries.values() ?? []) this.add(entry)
    this.cancel = next?.cancel
  }

  clear(): void {
    this.entries.clear()
    this.cancel = undefined
    this.hasTimeouts = false
  }
}

/** When a run has waited for people, or had no process. Without `to`, it waits still. */
export type Wait = { readonly from: number; readonly to?: number }

/** The fold of the records of a run: what a process must know to continue it. */
export class RunLog {
  readonly root = new Scope(rootPath, '')
  readonly scopes = new Map<string, Scope>([['', this.root]])
  input: InputRecord | undefined
  /** The ledger of the run up to its last checkpoint. */
  ledger: TimedLedgerEntry[] = []
  /** Hooks that were in force in any process that worked on it. */
  hooks: readonly HookRecord[] = []
  /** What hooks at `onPause` and `onResume` changed. It is applied when the open step closes. */
  deferred: StateChange[] = []
  /** The ids of the questions that it was suspended with. Undefined: it was not, or is continued. */
  pending: readonly string[] | undefined
  /** Whether nothing new may begin, because there is new input. */
  ends = false
  /** The time of the last record. */
  at = 0
  isOver = false
  /** How many effects had begun and ended when a process continued the run last. */
  before = 0
  /** False in a replay, where a subagent starts again from its first step. */
  readonly #keepsChildren: boolean
  /** When it has waited since its last checkpoint. The records of subagents that have gone on do not say so any more. */
  waits: readonly Wait[] = []
  #seq = 0

  constructor({ keepsChildren = true }: { readonly keepsChildren?: boolean } = {}) {
    this.#keepsChildren = keepsChildren
  }

  scope(path: EffectPath = rootPath): Scope {
    if (path.length === 0) return this.root
    const id = pathId(path)
    let scope = this.scopes.get(id)
    if (scope === undefined) this.scopes.set(id, (scope = new Scope(path, id)))
    return scope
  }

  /** The scopes of a run and of all subagents in it. */
  *scopesIn(outer: string): Generator<Scope> {
    for (const scope of this.scopes.values()) if (isWithin(scope.id, outer)) yield scope
  }

  /** Follows a record. `isNew`: this process has just made it. `state`: what its change leads to, if it is known. */
  apply(record: RunRecord, isNew = false, state?: AgentState): Entry | undefined {
    const last = this.at
    this.at = Math.max(last, record.at)
    switch (record.t) {
      case 'input':
        this.input = record
        this.hooks = record.hooks ?? []
        this.root.at = record.at
        return undefined
      case 'begin': {
        const entry = this.#entry(record, isNew)
        entry.begin = record
        if (record.key.kind === 'ask') this.#wait(record.at)
        return entry
      }
      case 'end': {
        const entry = this.#entry(record, isNew)
        if (entry.end !== undefined) return entry
        entry.end = record
        entry.endSeq = ++this.#seq
        this.#answered(record.at)
        return entry
      }
      case 'answer':
        this.#answer(record)
        return undefined
      case 'cancel':
        this.scope(record.path).cancel = record
        return undefined
      case 'pause':
        this.pending = record.pending
        this.settleCalls()
        this.ledger.push(...ofPause(record))
        if (record.change !== undefined) this.deferred.push(record.change)
        return undefined
      case 'resume':
        // No process worked on it since its last record.
        this.#wait(last)
        this.#answered(record.at)
        this.hooks = record.hooks
        this.pending = undefined
        this.before = this.#seq
        this.ends ||= record.ends === true
        this.ledger.push(...(record.ledger ?? []))
        if (record.change !== undefined) this.deferred.push(record.change)
        return undefined
      case 'step':
        this.#close(record, state)
        return undefined
      case 'final':
        this.#close(record, state)
        this.isOver = true
        return undefined
      default:
        return record satisfies never
    }
  }

  /** The questions that wait for an answer: those that the run was suspended with, or all, if its process died. */
  questions(): readonly Approval[] {
    const open = this.openAsks().map(({ begin }) => begin!.input as unknown as Approval)
    if (this.pending === undefined) return open
    return this.pending.flatMap((id) => open.find((each) => each.id === id) ?? [])
  }

  /** The questions without an answer, wherever they were asked. */
  openAsks(): readonly Entry[] {
    const open: Entry[] = []
    for (const { entries } of this.scopes.values())
      for (const entry of entries.values()) if (entry.key.kind === 'ask' && entry.end === undefined) open.push(entry)
    return open
  }

  /** How long the run has waited for people, or had no process, since its last checkpoint and between two times. */
  waitedMs(since: number, until = Infinity): number {
    let sum = 0
    for (const { from, to = Infinity } of this.waits) sum += Math.max(0, Math.min(to, until) - Math.max(from, since))
    return sum
  }

  #wait(from: number): void {
    if (this.waits.at(-1)?.to !== undefined || this.waits.length === 0) this.waits = [...this.waits, { from }]
  }

  /** A question is not open any more. The wait is over if no other one is. */
  #answered(to: number): void {
    const last = this.waits.at(-1)
    if (last === undefined || last.to !== undefined || this.openAsks().length > 0) return
    this.waits = [...this.waits.slice(0, -1), { from: last.from, to }]
  }

  /** What loaded effects have cost that the run did not ask for. */
  unreadUsage(outer: string): TokenUsage {
    let sum = noTokens
    for (const { end } of this.#unread(outer)) sum = addTokens(sum, usageOf(end))
    return sum
  }

  /** What the effects in the scopes of some subagents, or in the open step, have cost, whether or not the run has asked for them. */
  openUsage(outer: string): Usage {
    let usage = noUsage
    for (const { path, state, entries } of this.scopesIn(outer)) {
      if (state !== undefined && path.length > 0) usage = addUsage(usage, state.usage)
      for (const { key, end } of entries.values())
        if (key.kind !== 'child' && key.kind !== 'attempt') usage = addUsage(usage, usageOf(end))
    }
    return usage
  }

  /** Whether the run has asked for all that was loaded. What hooks did about a pause is not asked for again. */
  get isAllRead(): boolean {
    for (const { key } of this.#unread('')) if (key.trigger !== 'onPause' && key.trigger !== 'onResume') return false
    return true
  }

  /** The run waits: hooks know how the calls of the open step have ended that have. */
  settleCalls(): void {
    for (const { entries } of this.scopes.values())
      for (const entry of entries.values()) entry.isSettled = entry.end !== undefined
  }

  /** A process that loads the run has asked for nothing yet. */
  unreadAll(): void {
    for (const { entries } of this.scopes.values()) for (const entry of entries.values()) entry.isRead = false
  }

  #entry({ path, key }: BeginRecord | EndRecord, isNew: boolean): Entry {
    const scope = this.scope(path)
    const id = keyId(key)
    const known = scope.entries.get(id)
    if (known !== undefined) return known
    const entry: Entry = { id, scope, key, seq: ++this.#seq, isRead: isNew }
    scope.add(entry)
    return entry
  }

  /** What the run has not asked for. What happened inside an effect that has ended is part of its result. */
  *#unread(outer: string): Generator<Entry> {
    for (const scope of this.scopesIn(outer)) {
      if (this.#hasEnded(scope)) continue
      for (const entry of scope.entries.values()) if (!entry.isRead && !isInEnded(entry)) yield entry
    }
  }

  /** Whether a subagent, or one that it is a part of, has ended, and its parent knows it. */
  #hasEnded({ path }: Scope): boolean {
    return path.some(({ step, call, n }, i) => {
      const parent = this.scopes.get(pathId(path.slice(0, i)))
      return parent?.find({ step, kind: 'child', call, n })?.end !== undefined
    })
  }

  #answer({ approval, answer, at }: { approval: string; answer: Answer; at: number }): void {
    const entry = this.openAsks().find(({ begin }) => (begin!.input as { readonly id?: string }).id === approval)
    if (entry === undefined) return
    const { key, path } = entry.begin!
    entry.end = { t: 'end', at, key, value: answer, ...(path !== undefined && { path }) }
    entry.isRead = false
    this.#answered(at)
  }

  #close(record: StepRecord | Extract<RunRecord, { t: 'final' }>, known: AgentState | undefined): void {
    const scope = this.scope(record.t === 'final' ? undefined : record.path)
    const isRoot = scope.path.length === 0
    if (!isRoot && !this.#keepsChildren) return
    scope.state = known ?? applyDiff(scope.state, record.change)
    for (const each of this.scopesIn(scope.id)) {
      each.clear()
      if (each !== scope) this.scopes.delete(each.id)
    }
    this.#answered(record.at) // what has no answer is not asked any more
    scope.at = record.at
    if (!isRoot) {
      scope.ledger = [...scope.ledger, ...(record.ledger ?? [])]
      scope.isOver = record.t === 'step' && record.ended !== undefined
      return
    }
    this.ledger.push(...(record.ledger ?? []))
    this.deferred = []
    this.pending = undefined
    this.waits = []
  }
}

/** Whether it is an attempt at a model call or a tool call that has ended. */
function isInEnded({ scope, key: { kind, call } }: Entry): boolean {
  if (kind !== 'attempt') return false
  for (const { key, end } of scope.entries.values())
    if ((key.kind === 'model' || key.kind === 'tool') && key.call === call && end !== undefined) return true
  return false
}

/** A tool or a subagent: what a model has called. */
function isCall({ kind }: EffectKey): boolean {
  return kind === 'tool' || kind === 'child'
}

/** What hooks at `onPause` have decided: they do not run again with the open step. */
export function ofPause({ ledger = [] }: PauseRecord): readonly TimedLedgerEntry[] {
  return ledger.filter(({ trigger }) => trigger === 'onPause')
}

/** A state with what hooks changed, in the state before the open step, while the run was suspended. */
export function withDeferred(
  after: AgentState,
  changes: readonly StateChange[],
  before: AgentState | undefined,
): AgentState {
  let length = before === undefined ? 0 : AgentState.fieldsOf(before).messages.length
  return changes.reduce((state, change) => {
    const { messages, ...rest } = change
    if (messages === undefined) return applyChange(state, change)
    const since = state.messages.slice(length)
    length = messages.length
    return applyChange(state, { ...rest, messages: [...messages, ...since] })
  }, after)
}

/** What an effect has cost, if its result says so. */
export function usageOf(end: EndRecord | undefined): TokenUsage {
  const value = end?.value
  if (!isJsonObject(value)) return noTokens
  const { usage = value['spent'] ?? (value['execution'] as ToolExecution | undefined)?.usage } = value
  return isJsonObject(usage) ? { ...noTokens, ...usage } : noTokens
}
