import { decidingVote, type ContinuationOutcome } from '../core/state/continuation.ts'
import type { TimedLedgerEntry } from '../core/state/ledger.ts'
import type { Matrix, MatrixRow } from './matrix.ts'
import type { CellEntry, Question, RowDetail } from './run.types.ts'

/** A row in full. `pending` are the questions of its run. */
export function rowDetail(found: MatrixRow, { columnIds }: Matrix, pending: readonly Question[]): RowDetail {
  const { row, text, entries, step, call, made } = found
  const question = pending.find(({ id }) => id === row.question)
  const isStep = row.kind === 'model'
  const usage = isStep ? (step?.usage ?? made?.usage) : undefined
  const outcome = row.kind === 'votes' ? step?.outcome : undefined
  const output = call?.result?.output ?? (made?.kind === 'tool' ? made.output : undefined)
  return {
    row,
    text,
    ...(call !== undefined && { args: call.args }),
    ...(made?.kind === 'tool' && { args: made.input }),
    ...(call?.sentArgs !== undefined && { originalArgs: call.sentArgs }),
    ...(output !== undefined && { output }),
    ...(usage !== undefined && { usage }),
    entries: entries.map((entry) => cellEntry(entry, columnIds)),
    ...(outcome !== undefined && outcome.evaluations.length > 0 && { votes: votesOf(outcome) }),
    ...(question !== undefined && { question }),
    errors: [...(isStep ? (step?.errors ?? []) : []), ...(made?.error === undefined ? [] : [made.error])].map(
      ({ message }) => message,
    ),
  }
}

function cellEntry(entry: TimedLedgerEntry, columnIds: ReadonlyMap<string, number>): CellEntry {
  const { hook, trigger, mode, shadow = false, durationMs, changes = [], warnings = [] } = entry
  const { definedAt, decision, message, value, error } = entry
  return {
    column: columnIds.get(hook)!,
    hook,
    trigger,
    mode,
    shadow,
    ms: durationMs,
    changes,
    warnings: warnings.map((each) => each.message),
    ...(definedAt !== undefined && { definedAt }),
    ...(decision !== undefined && { decision }),
    ...(message !== undefined && { message }),
    ...(value !== undefined && { value }),
    ...(error !== undefined && { error }),
  }
}

/** The votes of a step, and why one of them decided. */
function votesOf(outcome: ContinuationOutcome): NonNullable<RowDetail['votes']> {
  const { shouldContinue, resolvedBy, evaluations } = outcome
  const winner = decidingVote(outcome)!
  const others = evaluations.filter((vote) => vote.decision === winner.decision).length - 1
  const order = 'forbidContinuation beats requestContinuation beats allowStop beats allowContinuation'
  const among = others > 0 ? ` Of ${others + 1} such votes, the most urgent reason decides, then the first.` : ''
  return {
    votes: evaluations,
    continues: shouldContinue,
    ...(resolvedBy !== undefined && { resolvedBy }),
    how: `"${winner.source}" decided by ${winner.decision} (${winner.reason}): ${order}.${among}`,
  }
}

/** Whether a row or what hooks did there contains a text, which is in lower case. */
export function contains({ row, text, entries }: MatrixRow, words: string): boolean {
  const said = entries.flatMap(({ hook, message, error, decision }) => [hook, message, error, decision])
  return [text, row.name, ...said].some((each) => each?.toLowerCase().includes(words) === true)
}
