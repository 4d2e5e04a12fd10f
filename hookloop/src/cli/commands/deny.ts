import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import type { ExitCode } from '../exit-codes.ts'
import { answerApprovals, answerOptions, type AnswerFlags } from './approve.ts'

export const command: CommandDefinition = {
  description: 'Deny tool calls that wait for approval. The model receives the reason.',
  examples: ['hookloop deny 7c200b7e --reason "Deploy to staging first" --resume'],
  configure: (command) => answerOptions(command.option('--reason <text>', 'reason that the model receives')),
  run: deny,
}

function deny(
  ids: readonly string[],
  flags: AnswerFlags & { readonly reason?: string },
  cli: CliContext,
): Promise<ExitCode> {
  const { reason = '' } = flags
  return answerApprovals(ids, { block: reason.trim() === '' ? 'The approver denied it.' : reason }, { flags, cli })
}
