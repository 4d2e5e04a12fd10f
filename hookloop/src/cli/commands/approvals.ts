import { userInfo } from 'node:os'
import type { Answer } from '../../state/tool-call.ts'
import { answerApproval, listApprovals, type PendingApproval } from '../../sessions/session/approvals.ts'
import type { SessionStore } from '../../sessions/stores/store.ts'
import { duration } from '../terminal/amounts.ts'
import { findApproval, isTrue, shortId } from '../sessions/approval-ids.ts'
import { argumentWords, parseArguments } from '../run/ask-approval.ts'
import { colorsFor } from '../terminal/colors.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import type { Place } from '../cli-context.ts'
import { exact } from '../terminal/printable.ts'
import { resume, type ResumeFlags } from './resume.ts'
import { existingStore, type StoreFlags } from '../sessions/open-store.ts'
import { UsageError } from '../usage-error.ts'

export type ApprovalsFlags = StoreFlags & { readonly json?: boolean }
export type AnswerFlags = ResumeFlags & {
  readonly args?: string
  readonly reason?: string
  readonly by?: string
  readonly resume?: boolean
}

/** `hookloop approvals`: every question that waits for somebody. */
export async function approvals(flags: ApprovalsFlags, place: Place): Promise<ExitCode> {
  const { store, flags: more } = await existingStore(flags, place.env)
  try {
    const pending = await pendingIn(store)
    if (flags.json === true) {
      const shown = pending.map((each) => ({ shortId: shortId(each, pending), ...each }))
      place.out.write(`${JSON.stringify(shown, undefined, 2)}\n`)
    } else if (pending.length === 0) place.err.write('Nobody waits for an answer.\n')
    else {
      place.out.write(`${pending.map((each) => questionWords(each, pending, place)).join('\n')}\n`)
      place.err.write(
        `Answer with: ${place.command} approve <id>${more}, or ${place.command} deny <id>${more} --reason "…"\n`,
      )
    }
    return exitCodes.completed
  } finally {
    await store.close()
  }
}

/** `hookloop approve`: lets calls run, as they were shown or with other arguments. */
export function approve(ids: readonly string[], flags: AnswerFlags, place: Place): Promise<ExitCode> {
  if (flags.args === undefined) return answer(ids, 'allow', { flags, place })
  if (ids.length > 1) throw new UsageError('--args are the arguments of one call. Approve one at a time.')
  const args = parseArguments(flags.args)
  if (args === undefined) throw new UsageError('--args: it must be a JSON object, such as \'{"path":"a.md"}\'.')
  return answer(ids, { allow: args }, { flags, place })
}

/** `hookloop deny`: refuses calls. The model is told why. */
export function deny(ids: readonly string[], flags: AnswerFlags, place: Place): Promise<ExitCode> {
  const { reason = '' } = flags
  return answer(ids, { block: reason.trim() === '' ? 'Somebody said no.' : reason }, { flags, place })
}

async function answer(
  ids: readonly string[],
  given: Answer,
  { flags, place }: { readonly flags: AnswerFlags; readonly place: Place },
): Promise<ExitCode> {
  const { store, flags: more } = await existingStore(flags, place.env)
  const { command, out, err } = place
  let session: string | undefined
  try {
    const pending = await pendingIn(store)
    const asked = ids.map((id) => findApproval(pending, id))
    if (flags.resume === true && asked.some((each) => each.session !== asked[0]!.session)) {
      throw new UsageError(
        'These questions wait in more than one session. Leave out --resume, or answer one at a time.',
      )
    }
    for (const approval of asked) {
      session = approval.session
      await answerApproval(store, { session, approval: approval.id, answer: given, by: flags.by ?? userName() })
      if (flags.json === true) out.write(`${JSON.stringify(answeredLine(approval, given))}\n`)
      else if (flags.quiet !== true) err.write(`${answeredWords(approval, given)}\n`)
    }
  } finally {
    await store.close()
  }
  if (flags.resume === true) return resume(session, flags, place)
  if (flags.json !== true && flags.quiet !== true) err.write(`Go on with: ${command} resume ${session}${more}\n`)
  return exitCodes.completed
}

/** What can be answered: what is shown of a question is what its id stands for. */
async function pendingIn(store: SessionStore): Promise<readonly PendingApproval[]> {
  return (await listApprovals(store)).filter(isTrue)
}

function questionWords(approval: PendingApproval, all: readonly PendingApproval[], { out, env }: Place): string {
  const { bold, dim } = colorsFor(out, env)
  const { toolCall, message, by, session, expiresAt } = approval
  const expires = expiresAt === undefined ? '' : ` · ${expiryWords(expiresAt - Date.now())}`
  return [
    `${bold(shortId(approval, all))}  ${exact(toolCall.name)} ${argumentWords(toolCall.args).replaceAll('\n', '\n  ')}`,
    `  ${exact(message)} ${dim(`(asked by ${exact(by)} in ${session}${expires})`)}`,
  ].join('\n')
}

function expiryWords(ms: number): string {
  return ms <= 0 ? 'expired, can only be denied' : `expires in ${duration(ms)}`
}

function answeredWords({ toolCall, session }: PendingApproval, given: Answer): string {
  const words = given === 'allow' ? 'Allowed' : 'allow' in given ? 'Allowed with other arguments' : 'Denied'
  return `${words}: ${exact(toolCall.name)} ${exact(JSON.stringify(toolCall.args)).slice(0, 200)} in ${session}.`
}

function answeredLine({ id, session }: PendingApproval, given: Answer): object {
  return { type: 'answered', id, session, answer: given }
}

/** Kept with the answer. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'unknown' // a user without a name, as in some containers
  }
}
