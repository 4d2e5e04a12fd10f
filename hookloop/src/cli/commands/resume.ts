import type { ResumeOptions } from '../../agent/loop/resume.ts'
import { pendingOf } from '../../agent/run.ts'
import type { Session } from '../../agent/session.ts'
import type { Answer, Answers, Approval } from '../../state/tool-call.ts'
import type { SessionSnapshot, OpenRun } from '../../sessions/log/read-session.ts'
import { sessionUnknown } from '../../sessions/stores/store.ts'
import { count } from '../terminal/amounts.ts'
import { askHere } from '../run/ask-approval.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { findSession, readKept } from '../sessions/find-session.ts'
import { answerLines, type Way } from '../run/next-steps.ts'
import type { Place } from '../cli-context.ts'
import { note, prepare, type CommandFlags, type PreparedToKeep } from '../run/prepare-run.ts'
import { Screen } from '../terminal/screen.ts'
import { existingStore } from '../sessions/open-store.ts'
import { UsageError } from '../usage-error.ts'
import { watch, type ShowFlags, type Watched, type WatchedRun } from '../run/watch-run.ts'

export type ResumeFlags = CommandFlags & ShowFlags & { readonly acceptMissing?: readonly string[] }

/** `hookloop resume`: goes on with a run that waits for somebody, or whose process is gone. */
export async function resume(given: string | undefined, flags: ResumeFlags, place: Place): Promise<ExitCode> {
  const opened = await existingStore(flags, place.env)
  try {
    const session = await findSession(opened.store, given)
    const kept = await readKept(opened.store, session)
    if (kept === undefined) throw sessionUnknown(session)
    if (kept.open === undefined && !kept.isSuspended) throw nothingLeft(session, place.command)
    const prepared = await prepare(flags, { place, keeping: { ...opened, session, kept } })
    if (kept.open === undefined) return await takeInputAgain(prepared, { flags, place })
    const conversation = prepared.agent.session(session)
    const resumed = await goOn(prepared, { kept, open: kept.open, conversation, flags, place })
    if (resumed !== undefined && resumed.ended.status !== 'suspended') await conversation.end()
    return resumed?.code ?? exitCodes.suspended
  } finally {
    await opened.store.close()
  }
}

type Going = {
  readonly kept: SessionSnapshot
  readonly open: OpenRun
  readonly conversation: Session<unknown>
  readonly flags: ResumeFlags
  readonly place: Place
}

/** Goes on with an open run, after whoever sits here has answered what it waits for. Nothing if it goes on waiting. */
export async function goOn({ person, way, shownAs }: PreparedToKeep, going: Going): Promise<WatchedRun | undefined> {
  const { conversation, flags, place } = going
  const answers = await answersTo(going, { way, isAskedHere: person !== undefined })
  if (answers === undefined) return undefined
  const { acceptMissing } = flags
  const options: ResumeOptions = { answers, ...(acceptMissing !== undefined && { acceptMissing }) }
  const start: Watched['start'] = (how) => conversation.resumeStream({ ...options, ...how })
  return watch({ start, person, way, shownAs }, flags, place)
}

/** A session that somebody suspended between two runs. */
async function takeInputAgain(
  { agent, way }: PreparedToKeep,
  { flags, place }: { readonly flags: ResumeFlags; readonly place: Place },
): Promise<ExitCode> {
  const { session, command } = way
  await agent.session(session).resume()
  if (flags.json === true) place.out.write(`${JSON.stringify({ type: 'result', status: 'idle', session })}\n`)
  note(`${session} takes input again: ${command} chat --session ${session}${way.flags}`, flags, place)
  return exitCodes.completed
}

/** What was answered here. Nothing if the run waits for answers and has not got a single one. */
async function answersTo(
  { kept, open, flags, place }: Going,
  { way, isAskedHere }: { readonly way: Way; readonly isAskedHere: boolean },
): Promise<Answers | undefined> {
  if (open.phase !== 'suspended' || open.answers !== undefined) return {}
  const pending = pendingOf(kept.state!)
  const unanswered = pending.filter(({ id }) => !Object.hasOwn(open.given, id))
  const answers = isAskedHere ? await askAll(unanswered, place) : {}
  if (pending.length === 0 || unanswered.length < pending.length || Object.keys(answers).length > 0) return answers
  note(`${way.session} waits for ${count(unanswered.length, 'answer')}.`, flags, place)
  for (const line of answerLines(unanswered, way)) note(line, flags, place)
  if (flags.json === true) place.out.write(`${JSON.stringify(waitingLine(way.session, unanswered))}\n`)
  return undefined
}

async function askAll(unanswered: readonly Approval[], place: Place): Promise<Answers> {
  const screen = new Screen(place)
  const interruption = interruptible(place.out, () => undefined)
  const answers: { [id: string]: Answer } = {}
  try {
    for (const approval of unanswered) {
      const answer = await askHere(approval, { screen, stdin: place.stdin, signal: interruption.signal, mayWait: true })
      if (interruption.signal.aborted) return {} // a question that was left by Ctrl-C is not answered
      if (answer !== 'suspend') answers[approval.id] = answer
    }
    return answers
  } finally {
    interruption.dispose()
  }
}

function waitingLine(session: string, pending: readonly Approval[]): object {
  return { type: 'result', status: 'suspended', session, pending }
}

function nothingLeft(session: string, command: string): UsageError {
  return new UsageError(
    `Nothing of the session "${session}" is left to do. To go on talking: ${command} chat --session ${session}`,
  )
}
