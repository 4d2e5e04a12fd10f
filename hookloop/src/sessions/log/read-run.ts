import { AgentState } from '../../state/agent-state.ts'
import { isJsonObject, sameJson, toJson, type Json, type JsonObject } from '../../state/json.ts'
import type { List } from '../../state/list.ts'
import type { Message } from '../../state/message.ts'
import { buildState, type ListDiff, type StateDiff } from '../../state/state-diff.ts'
import type { Answers } from '../../state/tool-call.ts'
import type { Checkpoint, EffectsFactory } from '../../effects/effects.ts'
import { AgentError } from '../../errors.ts'
import type { RecordEntry } from '../../effects/recording.ts'
import { Reading, RecordIndex, ReplayEffects } from '../../effects/replay-effects.ts'
import type { SessionRecord } from './session-records.ts'

/** What happened from one place where the state was kept to the next. */
type Piece = {
  readonly entries: readonly RecordEntry[]
  /** Where the process that did the rest of it took it over: when something had last been heard, and after how long. */
  readonly heardAt: number
  readonly downMs: number
  readonly takenOverAt: number
  readonly answers: { readonly answers: Answers; readonly at: number } | undefined
  /** How far the run was at the end of it, and what had become of the state; missing where the record ends. */
  readonly phase: Checkpoint['phase'] | undefined
  readonly diff: StateDiff | undefined
}

/** One run of a session, as it was written down. */
export type RecordedRun = {
  readonly name: string
  readonly at: number
  readonly input: Message
  readonly metadata: JsonObject | undefined
  /** The state it began with; missing if it was the first. */
  readonly before: AgentState | undefined
  readonly pieces: readonly Piece[]
}

/** A run of a session, by its number; a negative one counts from the end. */
export function readRun(records: readonly SessionRecord[], which: number): RecordedRun {
  const inputs = records.flatMap((record, i) => (record.type === 'input' ? [{ record, i }] : []))
  const found = Number.isInteger(which) ? inputs.at(which) : undefined
  if (found === undefined) {
    throw new AgentError('AGENT_INVALID_OPTION', `There is no run ${which}: the session has ${inputs.length}.`, {
      value: which,
    })
  }
  const diffs = records.slice(0, found.i).flatMap((record) => (record.type === 'state' ? [record.diff] : []))
  const before = buildState(diffs)
  const { run: name, at, message: input, metadata } = found.record
  const rest = records.slice(found.i + 1)
  const end = rest.findIndex(({ type }) => type === 'input')
  const own = end === -1 ? rest : rest.slice(0, end)
  return { name, at, input, metadata, before, pieces: piecesOf(own, at) }
}

function piecesOf(records: readonly SessionRecord[], at: number): readonly Piece[] {
  const pieces: Piece[] = []
  let open = new OpenPiece(at)
  for (const record of records) {
    if (record.type !== 'state') {
      open.take(record)
      continue
    }
    if (record.phase === 'changed') break
    pieces.push(open.close(record.phase, record.diff))
    if (record.phase === 'ended' || record.phase === 'inputBlocked') return pieces
    open = new OpenPiece(record.at)
  }
  return [...pieces, open.close()]
}

class OpenPiece {
  #entries: RecordEntry[] = []
  /** When something was last heard, and what that was when the piece was taken over. */
  #at: number
  #heardAt: number
  #downMs = 0
  #takenOverAt = 0
  #answers: Piece['answers']

  constructor(at: number) {
    this.#at = at
    this.#heardAt = at
  }

  take(record: Exclude<SessionRecord, { type: 'state' }>): void {
    switch (record.type) {
      case 'session':
      case 'input':
      case 'answer':
      case 'sessionSuspended':
      case 'sessionResumed':
        return
      case 'answers':
        this.#answers = record
        return
      case 'runResumed':
        this.#heardAt = this.#at
        this.#downMs += Math.max(0, record.at - this.#at)
        this.#at = record.at
        this.#takenOverAt = record.at
        // Whoever takes over a run that was cancelled finds it so from the beginning.
        this.#entries = this.#entries.map((entry) => (entry.type === 'cancel' ? { ...entry, check: 0 } : entry))
        return
      default:
        this.#entries.push(record)
        if ('at' in record) this.#at = record.at
    }
  }

  close(phase?: Checkpoint['phase'], diff?: StateDiff): Piece {
    const [entries, heardAt, downMs, answers] = [this.#entries, this.#heardAt, this.#downMs, this.#answers]
    return { entries, heardAt, downMs, takenOverAt: this.#takenOverAt, answers, phase, diff }
  }
}

/** A run of a session while it is replayed: which piece of it is being read. */
export class RunReplayer {
  readonly #run: RecordedRun
  readonly #reading: Reading
  #at = 0
  #problem: AgentError | undefined

  constructor(run: RecordedRun, signal: AbortSignal) {
    this.#run = run
    this.#reading = new Reading(new RecordIndex(run.pieces[0]!.entries), signal)
  }

  get piece(): Piece {
    return this.#run.pieces[this.#at] ?? nothing
  }

  /** Whether the record ends in the piece that is being read. */
  get isLast(): boolean {
    return this.piece.phase === undefined
  }

  /** Set when what the replay came to is not what was kept. */
  get problem(): AgentError | undefined {
    return this.#problem
  }

  /** The effects of the run, from a certain time on. */
  effects(now: number): EffectsFactory {
    return ({ emit }) =>
      new SessionReplayEffects(this.#reading, { emit, name: this.#run.name, now }, (checkpoint) =>
        this.#turn(checkpoint),
      )
  }

  #turn({ phase, state }: Checkpoint): number {
    const { phase: kept, diff } = this.piece
    const other = kept !== undefined && kept !== phase ? `phase, "${kept}",` : diff && otherPlace(state, diff)
    if (other !== undefined) {
      this.#problem ??= new AgentError(
        'REPLAY_DIVERGED',
        `The state that was kept has another ${other} than the one the replay came to, as "${phase}".`,
      )
      throw this.#problem
    }
    this.#at++
    this.#reading.turn(new RecordIndex(this.piece.entries))
    return this.piece.heardAt
  }
}

const nothing: Piece = {
  entries: [],
  heardAt: 0,
  downMs: 0,
  takenOverAt: 0,
  answers: undefined,
  phase: undefined,
  diff: undefined,
}

/** The first place of a state that is not as it was when it was written down. Hooks in force are not compared. */
function otherPlace(state: AgentState, diff: StateDiff): string | undefined {
  const { execution: now, messages: said, metadata: known, ...plain } = AgentState.fieldsOf(state)
  const { version: _version, removed: _removed, metadata, execution, messages, ...own } = diff
  const { hooks: _hooks, steps: _steps, ...set } = execution?.set ?? {}
  return (
    otherKey('', plain, own) ??
    otherKey('metadata.', known, metadata ?? {}) ??
    otherKey('execution.', now ?? {}, set) ??
    (isOther(messages, said) ? 'conversation' : undefined) ??
    (now !== undefined && isOther(execution?.steps, now.steps) ? 'list of steps' : undefined)
  )
}

function otherKey(path: string, now: object, kept: JsonObject): string | undefined {
  const values = now as { readonly [key: string]: unknown }
  const other = Object.entries(kept).find(([key, value]) => !isSame(toJson(values[key] ?? null), value))
  return other === undefined ? undefined : `${path}${other[0]}`
}

/** As it was, but for the hooks that agents in it were under. */
function isSame(now: Json, kept: Json): boolean {
  return sameJson(now, kept) || (isJsonObject(now) && sameJson(withoutHooks(now), withoutHooks(kept)))
}

function withoutHooks(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutHooks)
  if (!isJsonObject(value)) return value
  const isExecution = 'hooks' in value && 'waitedMs' in value
  const entries = Object.entries(value).filter(([key]) => !(isExecution && key === 'hooks'))
  return Object.fromEntries(entries.map(([key, part]) => [key, withoutHooks(part)]))
}

function isOther<T extends Json>(grown: ListDiff<T> | undefined, now: List<T>): boolean {
  if (grown === undefined) return false
  const { keep, add, from, more = [] } = grown
  const [known, end] = [keep + add.length + more.length, now.length - more.length]
  if (from === undefined ? now.length !== known : now.length < known) return true
  return (
    add.some((item, i) => !sameJson(item, now.at(keep + i)!)) ||
    more.some((item, i) => !sameJson(item, now.at(end + i)!))
  )
}

/** Answers from the record of a session, piece by piece. */
class SessionReplayEffects extends ReplayEffects {
  readonly #turn: (checkpoint: Checkpoint) => number

  constructor(
    reading: Reading,
    how: ConstructorParameters<typeof ReplayEffects>[1],
    turn: (checkpoint: Checkpoint) => number,
  ) {
    super(reading, how)
    this.#turn = turn
  }

  checkpoint(checkpoint: Checkpoint): void {
    this.stamp(this.#turn(checkpoint))
  }
}
