import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import type { ExitCode } from '../exit-codes.ts'
import { parseArguments } from '../run/ask-approval.ts'
import { answerApprovals, answerOptions, type AnswerFlags } from '../sessions/answer-approvals.ts'
import { UsageError } from '../usage-error.ts'

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
  if (args === undefined) throw new UsageError('--args must be a JSON object, such as \'{"path":"a.md"}\'.')
  return answerApprovals(ids, { allow: args }, { flags, cli })
}
