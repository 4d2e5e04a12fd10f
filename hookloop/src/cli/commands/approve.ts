import { userInfo } from 'node:os'
import type { Command } from 'commander'
import { answerApproval } from '../../sessions/session/approvals.ts'
import { shorten } from '../../values/text.ts'
import type { Answer } from '../../core/state/tool-call.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { resumeOptions, runOptions } from '../options.ts'
import { parseArguments } from '../run/ask-approval.ts'
import { selectingOptions } from '../run/session-options.ts'
import { findApproval, pendingApprovals } from '../sessions/approval-ids.ts'
import { loadIfPresent } from '../sessions/find-session.ts'
import { withStore } from '../sessions/open-store.ts'
import { exact } from '../terminal/printable.ts'
import { UsageError } from '../usage-error.ts'
import { resume, type ResumeFlags } from './resume.ts'
import { jsonText } from '../terminal/json.ts'
import { shellQuote } from '../terminal/shell-quote.ts'

const MAX_ARGS = 200

export type AnswerFlags = ResumeFlags & { readonly by?: string; readonly resume?: boolean }

export const command: CommandDefinition = {
  description:
    'Approve tool calls that wait for approval. Resume the session with --resume, or with the resume command.',
  examples: ['hookloop approve 7c200b7e --resume', `hookloop approve 7c20 --args '{"to":"staging"}'`],
  configure: (command) => answerOptions(command.option('--args <json>', 'approve with these arguments instead')),
  run: approve,
}

function approve(
  ids: readonly string[],
  flags: AnswerFlags & { readonly args?: string },
  cli: CliContext,
): Promise<ExitCode> {
  if (flags.args === undefined) return answerApprovals(ids, 'allow', { flags, cli })
  if (ids.length > 1) throw new UsageError('--args applies to one call. Approve one at a time.')
  const args = parseArguments(flags.args)
  if (typeof args === 'string')
    throw new UsageError(`--args must be a JSON object, such as '{"path":"a.md"}': ${exact(args)}`)
  return answerApprovals(ids, { allow: args }, { flags, cli })
}

export function answerOptions(command: Command): Command {
  command
    .argument('<id...>', 'ids that `approvals` prints, or prefixes')
    .option('--by <name>', 'approver, stored with the answer (default: the user name)')
    .option('--resume', 'resume the session; the options below apply to that')
  return runOptions(resumeOptions(command))
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
    const saved = await loadIfPresent(store, session)
    if (flags.resume === true && approvals.some((each) => each.session !== session)) {
      throw new UsageError('These approvals belong to several sessions. Omit --resume, or answer one at a time.')
    }
    for (const { id, session, toolCall } of approvals) {
      await answerApproval(store, { session, approval: id, answer, by: flags.by ?? userName() })
      if (flags.json === true) out.write(`${jsonText({ type: 'answered', id, session, answer })}\n`)
      if (isSilent) continue
      err.write(
        `${verb(answer)}: ${exact(toolCall.name)} ${shorten(exact(JSON.stringify(toolCall.args)), MAX_ARGS)} in ${exact(session)}.\n`,
      )
    }
    if (flags.resume !== true && !isSilent) {
      const selected = selectingOptions(options, flags, { saved, env: cli.env })
      err.write(`Resume with: ${command} resume ${shellQuote(session)}${selected}\n`)
    }
    return session
  })
  return flags.resume === true ? resume(session, flags, cli) : exitCodes.completed
}

function verb(answer: Answer): string {
  if (answer === 'allow') return 'Approved'
  return 'allow' in answer ? 'Approved with other arguments' : 'Blocked'
}

/** The name that is stored with answers. */
export function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'unknown' // a user without a name, as in some containers
  }
}
