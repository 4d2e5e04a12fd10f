import { decidingVote, type ContinuationOutcome } from '../plugin.ts'
import type { MatrixRow } from './matrix.ts'
import type { Question, RowDetail } from './run.types.ts'

/** A row in full. `pending` are the questions of its run. */
export function rowDetail(found: MatrixRow, pending: readonly Question[]): RowDetail {
  const { row, text, entries, step, call, made } = found
  const isStep = row.kind === 'model'
  const ofTool = made?.kind === 'tool' ? made : undefined
  const outcome = row.kind === 'votes' ? step?.outcome : undefined
  const errors = [...(isStep ? (step?.errors ?? []) : []), ...(made?.error === undefined ? [] : [made.error])]
  return {
    row,
    text,
    args: call?.args ?? ofTool?.input,
    originalArgs: call?.sentArgs,
    output: call?.result?.output ?? ofTool?.output,
    usage: isStep ? (step?.usage ?? made?.usage) : undefined,
    entries,
    votes: outcome !== undefined && outcome.evaluations.length > 0 ? { ...outcome, how: howOf(outcome) } : undefined,
    question: pending.find(({ id }) => id === row.question),
    errors: errors.map(({ message }) => message),
  }
}

/** Why one of the votes decided. */
function howOf(outcome: ContinuationOutcome): string {
  const winner = decidingVote(outcome)!
  const others = outcome.evaluations.filter((vote) => vote.decision === winner.decision).length - 1
  const order = 'forbidContinuation beats requestContinuation beats allowStop beats allowContinuation'
  const among = others > 0 ? ` Of ${others + 1} such votes, the most urgent reason decides, then the first.` : ''
  return `"${winner.source}" decided by ${winner.decision} (${winner.reason}): ${order}.${among}`
}

/** Whether a row or what hooks did there contains a text, which is in lower case. */
export function contains({ row, text, entries }: MatrixRow, words: string): boolean {
  const said = entries.flatMap(({ hook, message, error, decision }) => [hook, message, error, decision])
  return [text, row.name, ...said].some((each) => each?.toLowerCase().includes(words) === true)
}
