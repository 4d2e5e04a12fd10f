import type { Run } from '../../agent/run.ts'
import type { Approval } from '../../state/tool-call.ts'
import { shortId } from '../sessions/approval-ids.ts'
import { exact } from '../terminal/printable.ts'

/** A session as it can be got to again. */
export type Way = {
  readonly session: string
  readonly command: string
  /** The options that lead to its store, and to its agent if the session does not know it. */
  readonly flags: string
}

/** What can be done next with a run that is kept, as lines to copy. */
export function nextSteps(run: Run<unknown>, way: Way): readonly string[] {
  const { session, command, flags } = way
  if (run.status !== 'suspended')
    return [`kept as ${session} · go on with: ${command} chat --session ${session}${flags}`]
  return [...answerLines(run.pending, way), `${answerWord(run.pending)}${command} resume ${session}${flags}`]
}

/** How each question is answered. */
export function answerLines(pending: readonly Approval[], { command, flags }: Way): readonly string[] {
  return pending.map((approval, i) => {
    const id = shortId(approval, pending)
    return `${i === 0 ? 'answer: ' : '        '}${command} approve ${id}${flags}, or ${command} deny ${id}${flags}`
  })
}

function answerWord(pending: readonly Approval[]): string {
  return pending.length === 0 ? 'go on:  ' : 'then:   '
}

/** A value as a shell takes it, on one line and with everything in it to be seen. */
export function quoted(value: string): string {
  const shown = exact(value).replaceAll('\n', '\\n')
  return /^[\w./:@%+=,-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", `'\\''`)}'`
}
