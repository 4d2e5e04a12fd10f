import { isJsonObject, type Json } from '../values/json.ts'
import { textOf, type Part, type TimedLedgerEntry } from '../plugin.ts'
import type { CallPath, StoredCall, StoredRun, StoredRunEvent, StoredStep, StoredToolCall } from '../sessions/index.ts'
import { shorten } from '../values/text.ts'
import { Columns, isDecision } from './cells.ts'
import type { Column, Row } from './run.types.ts'

/** What a row is made of. */
type Source = {
  /** The complete text. */
  readonly text: string
  readonly entries?: readonly TimedLedgerEntry[]
  readonly step?: StoredStep
  readonly call?: StoredToolCall
  /** The call of a subagent. */
  readonly made?: StoredCall | undefined
}
export type MatrixRow = Source & { readonly row: Row; readonly entries: readonly TimedLedgerEntry[] }

/** The decisions of a run: a row for everything that happened, a column for every hook. */
export type Matrix = {
  /** In the order in which the hooks fire. */
  readonly columns: readonly Column[]
  readonly rows: readonly MatrixRow[]
  /** The number of rows with a decision. */
  readonly decisions: number
}

type RowFields = Omit<Row, 'index' | 'text' | 'cells' | 'decision'>

/** The matrix of a run. Every entry of its ledger is in exactly one row. */
export function matrixOf(run: StoredRun): Matrix {
  const columns = new Columns(run)
  const rows: MatrixRow[] = []
  const add = (fields: RowFields, source: Source): void => {
    const { text, entries = [] } = source
    const cells = columns.cells(entries)
    const isAsked = fields.question !== undefined // a tool can ask without a hook
    const decision = entries.some(isDecision) || isAsked
    rows.push({ ...source, row: { ...fields, index: rows.length, text: line(text), cells, decision }, entries })
  }
  const entries = new Places(run.ledger.filter(({ path }) => path === undefined))
  const inSubagents = Map.groupBy(
    [...run.calls.filter(isShownInside), ...run.ledger].filter(hasPath),
    ({ path }) => `${path[0]!.step}/${path[0]!.call}`,
  )
  const calls = Map.groupBy(run.calls, placeOf)
  const events = Map.groupBy(run.events.filter(isShown), ({ step }) => step)
  const shown = new Set<string>()

  add({ kind: 'input', step: 0, at: run.at }, { text: textOf(run.input.content), entries: entries.take('input') })
  for (const step of run.steps) {
    const { index } = step
    const votes = entries.take(`votes/${index}`)
    const hasVotes = (step.outcome?.evaluations.length ?? 0) > 0 || votes.some(isDecision)
    const atModel = entries.take(`model/${index}`)
    const models = calls.get(`model/${index}`)?.filter(({ kind, hook }) => kind === 'inference' && hook === undefined)
    add(modelFields(step, models ?? []), {
      text: step.text,
      step,
      entries: hasVotes ? atModel : [...atModel, ...votes],
    })
    for (const call of step.toolCalls) {
      if (call.approval !== undefined) shown.add(call.approval.id)
      const text = argsText(call.args)
      add(callFields(index, call), { text, step, call, entries: entries.take(`call/${index}/${call.id}`) })
      for (const inside of Map.groupBy(inSubagents.get(`${index}/${call.id}`) ?? [], placeOf).values()) {
        const made = inside.findLast((each) => 'key' in each)
        const said = inside.filter((each) => 'mode' in each)
        add(subagentFields(inside[0]!, { made, tool: said[0]?.tool }), { text: madeText(made), made, entries: said })
      }
    }
    for (const event of events.get(index) ?? []) add(eventFields(event), { text: eventText(event) })
    if (hasVotes) add({ kind: 'votes', step: index, at: step.at }, { text: votesText(step), step, entries: votes })
  }
  const { final } = run
  const { length } = run.steps
  const last = entries.take('end')
  for (const rest of entries.rest()) {
    const { step, trigger } = rest[0]!
    const said = rest.find(isDecision)
    add({ kind: 'note', step, name: trigger }, { text: said?.error ?? said?.message ?? '', entries: rest })
  }
  for (const { id, by, message, toolCall } of run.pending.filter((each) => !shown.has(each.id))) {
    const fields = { kind: 'note', step: length, name: toolCall.name, status: 'asked', question: id } as const
    add(fields, { text: `${by}: ${message}` })
  }
  if (final !== undefined)
    add({ kind: 'end', step: length, at: final.at }, { text: `${final.by}: ${final.message}`, entries: last })
  return { columns: columns.sorted(), rows, decisions: rows.filter(({ row }) => row.decision).length }
}

/** The entries of a ledger by the row that they belong to. */
class Places {
  readonly #byPlace: Map<string, TimedLedgerEntry[]>

  constructor(ledger: readonly TimedLedgerEntry[]) {
    this.#byPlace = Map.groupBy(ledger, placeOf)
  }

  take(place: string): readonly TimedLedgerEntry[] {
    const found = this.#byPlace.get(place) ?? []
    this.#byPlace.delete(place)
    return found
  }

  /** What belongs to no step, such as the limit that kept the next one from starting. */
  rest(): readonly (readonly TimedLedgerEntry[])[] {
    return [...this.#byPlace.values()]
  }
}

const MAX_TEXT_CHARS = 200

/** The beginning of a text as one line. */
export function line(text: string): string {
  return shorten(
    text
      .slice(0, 4 * MAX_TEXT_CHARS)
      .replaceAll(/\s+/g, ' ')
      .trim(),
    MAX_TEXT_CHARS,
  )
}

const atInput: ReadonlySet<string> = new Set(['onSessionStart', 'onUserInput', 'beforeExecution'])
const atEnd: ReadonlySet<string> = new Set(['afterExecution', 'onSessionEnd'])

type Placed = Pick<TimedLedgerEntry, 'step' | 'call'> & {
  readonly trigger?: string
  readonly path?: readonly { readonly step: number; readonly call: string }[]
}

/** The row that an entry of the ledger or a call belongs to. */
function placeOf({ step, call, trigger = '', path }: Placed): string {
  const within = path?.map((each) => `${each.step}/${each.call}/`).join('')
  const closed = trigger === 'onStop' ? step - 1 : step // the step was closed when onStop fired
  const place =
    call !== undefined
      ? `call/${step}/${call}`
      : trigger === 'onStop' || trigger === 'afterStep'
        ? `votes/${closed}`
        : `model/${step}`
  if (within !== undefined) return `sub/${within}${place}`
  if (call === undefined && atInput.has(trigger)) return 'input'
  return call === undefined && atEnd.has(trigger) ? 'end' : place
}

function durationOf(at: number | undefined, ended: number | undefined): number | undefined {
  return at === undefined || ended === undefined ? undefined : Math.max(0, ended - at)
}

function modelFields(step: StoredStep, calls: readonly StoredCall[]): RowFields {
  const { index, model, seq, isOpen, began, at, errors } = step
  const ms = calls.reduce((sum, each) => sum + (durationOf(each.began, each.ended) ?? 0), 0)
  const isRunning = isOpen === true && calls.some(({ ended }) => ended === undefined)
  return {
    kind: 'model',
    step: index,
    name: model,
    at: began ?? at,
    ms: ms > 0 ? ms : undefined,
    status: isRunning ? 'running' : errors.length > 0 ? 'failed' : undefined,
    forkAt: seq,
  }
}

function callFields(step: number, { id, name, result, approval, began, ended }: StoredToolCall): RowFields {
  const status =
    approval !== undefined ? 'asked' : result?.withheld === true ? 'withheld' : (result?.status ?? 'running')
  const times = { at: began, ms: durationOf(began, ended) }
  return { kind: 'call', step, name, call: id, status, ...times, question: approval?.id }
}

function subagentFields(
  { step, call, path, trigger }: Inside,
  { made, tool }: { readonly made: StoredCall | undefined; readonly tool: string | undefined },
): RowFields {
  const { name = tool ?? made?.model } = Object(made?.input) as { readonly name?: string }
  const isVotes = call === undefined && (trigger === 'afterStep' || trigger === 'onStop')
  return {
    kind: call !== undefined ? 'call' : isVotes ? 'votes' : 'model',
    step,
    path: path.map(({ agent }) => agent),
    name,
    call,
    status: made?.error === undefined ? undefined : 'failed',
    at: made?.began,
    ms: durationOf(made?.began, made?.ended),
  }
}

type Inside = (StoredCall | TimedLedgerEntry) & { readonly path: CallPath }

function hasPath(part: StoredCall | TimedLedgerEntry): part is Inside {
  return part.path !== undefined
}

/** A call of a model or a tool that a subagent makes. Those of its hooks, and questions, are in the row that they are about. */
function isShownInside({ kind, hook }: StoredCall): boolean {
  return hook === undefined && (kind === 'inference' || kind === 'tool')
}

/** The arguments of a call as a line: the only one by itself, several as JSON. */
function argsText(args: Json): string {
  const values = isJsonObject(args) ? Object.values(args) : [args]
  const [only] = values
  return values.length === 1 && typeof only === 'string' ? only : JSON.stringify(args)
}

function madeText(made: StoredCall | undefined): string {
  if (made === undefined) return ''
  const { kind, input, output } = made
  if (kind === 'tool') return isJsonObject(input) ? argsText(input['args'] ?? input) : argsText(input)
  return Array.isArray(output) ? textOf(output as readonly Part[]) : ''
}

function votesText({ outcome }: StoredStep): string {
  if (outcome === undefined) return ''
  const by = outcome.resolvedBy === undefined ? '' : ` (${outcome.resolvedBy})`
  return `${outcome.shouldContinue ? 'continues' : `stops: ${outcome.stopReason ?? ''}`}${by}`
}

function isShown({ type }: StoredRunEvent): boolean {
  return type !== 'suspended' && type !== 'resumed'
}

function eventFields({ type, step, at }: StoredRunEvent): RowFields {
  return { kind: 'note', step, name: type, at }
}

function eventText(event: StoredRunEvent): string {
  switch (event.type) {
    case 'answered': {
      const { answer, by } = event
      const what =
        answer === 'allow' ? 'allowed' : 'allow' in answer ? 'allowed with other arguments' : `blocked: ${answer.block}`
      return `${what}${by === undefined ? '' : ` (${by})`}`
    }
    case 'interrupted':
      return `The process of the run ended. Another one resumed it after ${Math.round(event.downMs / 1000)} s.`
    case 'sessionSuspended':
      return `The session was suspended. ${event.reason ?? ''}`
    case 'sessionResumed':
      return 'The session was resumed.'
    case 'rewound':
      return 'The session was rewound to an earlier step.'
    default:
      return event.type
  }
}
