import type { Run } from '../../core/agent/run.ts'
import type { SessionReader } from '../../sessions/log/session-reader.ts'
import { isPrepared, takesNoInput } from '../../sessions/session/unfinished-run.ts'
import type { Approval } from '../../core/state/tool-call.ts'
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

/** Why a session takes no message, with command lines to copy. */
export function unfinishedLines(saved: SessionReader, ref: SessionRef): string {
  const { session, command, options } = ref
  const { open } = saved
  const asked = open?.pending === undefined ? [] : open.questions()
  return [
    takesNoInput(session, saved),
    ...answerLines(asked, ref),
    `${asked.length === 0 ? 'resume: ' : 'then:   '}${command} resume ${shellQuote(session)}${options}`,
    ...(open === undefined || isPrepared(open)
      ? []
      : ['or:     add --on-new-input block to end the run and take the message']),
  ].join('\n')
}

export function continueLine({ session, command, options }: SessionRef): string {
  return `saved as ${exact(session)} · continue with: ${command} chat --session ${shellQuote(session)}${options}`
}

/** Arguments that are longer may be cut on a narrow screen. */
const MAX_ARGS = 40

/** How to see what is asked completely, and how to answer each approval. */
export function answerLines(pending: readonly Approval[], { command, options }: SessionRef): readonly string[] {
  const isCut = pending.some(({ toolCall }) => JSON.stringify(toolCall.args).length > MAX_ARGS)
  const lines = pending.map((approval, i) => {
    const id = shortId(approval, pending)
    return `${i === 0 ? 'answer: ' : '        '}${command} approve ${id}${options}, or ${command} block ${id}${options}`
  })
  return isCut ? [`review: ${command} approvals${options} shows all arguments`, ...lines] : lines
}
