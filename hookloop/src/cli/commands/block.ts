import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import type { ExitCode } from '../exit-codes.ts'
import { answerApprovals, answerOptions, type AnswerFlags } from './approve.ts'

export const command: CommandDefinition = {
  description: 'Block tool calls that wait for approval. The model receives the reason.',
  examples: ['hookloop block 7c200b7e --reason "Deploy to staging first" --resume'],
  configure: (command) => answerOptions(command.option('--reason <text>', 'reason that the model receives')),
  run: block,
}

function block(
  ids: readonly string[],
  flags: AnswerFlags & { readonly reason?: string },
  cli: CliContext,
): Promise<ExitCode> {
  const { reason = '' } = flags
  return answerApprovals(ids, { block: reason.trim() === '' ? 'The approver blocked it.' : reason }, { flags, cli })
}
