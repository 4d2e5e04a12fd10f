import { pendingOf } from '../../agent/run.ts'
import type { SessionSnapshot, OpenRun } from '../../sessions/log/read-session.ts'
import type { Answer, Answers, Approval } from '../../state/tool-call.ts'
import type { CliContext } from '../cli-context.ts'
import { count } from '../terminal/amounts.ts'
import { interruptible } from '../terminal/interruption.ts'
import { Screen } from '../terminal/screen.ts'
import { askApproval } from './ask-approval.ts'
import { answerLines, type SessionRef } from './next-steps.ts'
import { note } from './prepare-run.ts'
import type { ShowFlags } from './watch-run.ts'

type Collecting = {
  readonly saved: SessionSnapshot
  readonly open: OpenRun
  readonly ref: SessionRef
  /** Whether the user at the terminal is asked. */
  readonly canAsk: boolean
  readonly flags: ShowFlags
  readonly cli: CliContext
}

/** Answers of the user at the terminal. Undefined if the run waits for answers and has none at all. */
export async function collectAnswers(collecting: Collecting): Promise<Answers | undefined> {
  const { saved, open, ref, canAsk, flags, cli } = collecting
  if (open.phase !== 'suspended' || open.answers !== undefined) return {}
  const pending = pendingOf(saved.state!)
  const unanswered = pending.filter(({ id }) => !Object.hasOwn(open.given, id))
  const answers = canAsk ? await askAll(unanswered, cli) : {}
  if (pending.length === 0 || unanswered.length < pending.length || Object.keys(answers).length > 0) return answers
  const { session } = ref
  note(`${session} waits for ${count(unanswered.length, 'approval')}.`, flags, cli)
  for (const line of answerLines(unanswered, ref)) note(line, flags, cli)
  const result = { type: 'result', status: 'suspended', session, pending: unanswered }
  if (flags.json === true) cli.out.write(`${JSON.stringify(result)}\n`)
  return undefined
}

async function askAll(unanswered: readonly Approval[], cli: CliContext): Promise<Answers> {
  const screen = new Screen(cli)
  const { signal, dispose } = interruptible(cli.out, () => undefined)
  const answers: { [id: string]: Answer } = {}
  try {
    for (const approval of unanswered) {
      const answer = await askApproval(approval, { screen, stdin: cli.stdin, signal, canSuspend: true })
      if (signal.aborted) return {} // Ctrl-C at a question does not answer it
      if (answer !== 'suspend') answers[approval.id] = answer
    }
    return answers
  } finally {
    dispose()
  }
}
