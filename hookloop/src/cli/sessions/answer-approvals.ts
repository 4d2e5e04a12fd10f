import { userInfo } from 'node:os'
import type { Command } from 'commander'
import { answerApproval, listApprovals, type PendingApproval } from '../../sessions/session/approvals.ts'
import type { SessionStore } from '../../sessions/stores/store.ts'
import type { Answer } from '../../state/tool-call.ts'
import type { CliContext } from '../cli-context.ts'
import { resume, type ResumeFlags } from '../commands/resume.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { runOptions } from '../options.ts'
import { exact } from '../terminal/printable.ts'
import { UsageError } from '../usage-error.ts'
import { findApproval, isAuthentic } from './approval-ids.ts'
import { withStore } from './open-store.ts'

export type AnswerFlags = ResumeFlags & { readonly by?: string; readonly resume?: boolean }

export function answerOptions(command: Command): Command {
  command
    .argument('<id...>', 'ids that `approvals` prints, or prefixes')
    .option('--by <name>', 'approver, stored with the answer (default: the user name)')
    .option('--resume', 'resume the session; the options below apply to that')
  return runOptions(command)
}

/** Stores an answer to each approval, and resumes the session with `--resume`. All ids are checked first. */
export async function answerApprovals(
  ids: readonly string[],
  answer: Answer,
  { flags, cli }: { readonly flags: AnswerFlags; readonly cli: CliContext },
): Promise<ExitCode> {
  const { command, out, err } = cli
  const isSilent = flags.json === true || flags.quiet === true
  const session = await withStore(flags, cli, async ({ store, options }) => {
    const pending = await pendingApprovals(store)
    const approvals = ids.map((id) => findApproval(pending, id))
    const { session } = approvals.at(-1)!
    if (flags.resume === true && approvals.some((each) => each.session !== session)) {
      throw new UsageError('These approvals belong to several sessions. Omit --resume, or answer one at a time.')
    }
    for (const { id, session, toolCall } of approvals) {
      await answerApproval(store, { session, approval: id, answer, by: flags.by ?? userName() })
      if (flags.json === true) out.write(`${JSON.stringify({ type: 'answered', id, session, answer })}\n`)
      if (isSilent) continue
      err.write(
        `${verb(answer)}: ${exact(toolCall.name)} ${exact(JSON.stringify(toolCall.args)).slice(0, 200)} in ${session}.\n`,
      )
    }
    if (flags.resume !== true && !isSilent) err.write(`Resume with: ${command} resume ${session}${options}\n`)
    return session
  })
  return flags.resume === true ? resume(session, flags, cli) : exitCodes.completed
}

/** The approvals that can be answered. One whose call does not match its id is forged, and is left out. */
export async function pendingApprovals(store: SessionStore): Promise<readonly PendingApproval[]> {
  return (await listApprovals(store)).filter(isAuthentic)
}

function verb(answer: Answer): string {
  if (answer === 'allow') return 'Approved'
  return 'allow' in answer ? 'Approved with other arguments' : 'Denied'
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'unknown' // a user without a name, as in some containers
  }
}
