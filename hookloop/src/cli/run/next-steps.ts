import type { Run } from '../../agent/run.ts'
import type { Approval } from '../../state/tool-call.ts'
import { shortId } from '../sessions/approval-ids.ts'
import { shellQuote } from '../terminal/shell-quote.ts'
import { exact } from '../terminal/printable.ts'

/** A session, and how to select it on a command line. */
export type SessionRef = {
  readonly session: string
  readonly command: string
  /** The options that select its store, with a leading blank. */
  readonly options: string
}

/** Command lines to copy that continue a stored run. */
export function nextSteps(run: Run<unknown>, ref: SessionRef): readonly string[] {
  const { session, command, options } = ref
  if (run.status !== 'suspended') return [continueLine(ref)]
  const resume = `${command} resume ${shellQuote(session)}${options}`
  return [...answerLines(run.pending, ref), `${run.pending.length === 0 ? 'resume: ' : 'then:   '}${resume}`]
}

export function continueLine({ session, command, options }: SessionRef): string {
  return `saved as ${exact(session)} · continue with: ${command} chat --session ${shellQuote(session)}${options}`
}

/** How to answer each approval. */
export function answerLines(pending: readonly Approval[], { command, options }: SessionRef): readonly string[] {
  return pending.map((approval, i) => {
    const id = shortId(approval, pending)
    return `${i === 0 ? 'answer: ' : '        '}${command} approve ${id}${options}, or ${command} deny ${id}${options}`
  })
}
