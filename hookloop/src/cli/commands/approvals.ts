import type { PendingApproval } from '../../sessions/session/approvals.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { storeOptions } from '../options.ts'
import { argumentsText } from '../run/ask-approval.ts'
import { pendingApprovals, shortId } from '../sessions/approval-ids.ts'
import { withStore, type StoreFlags } from '../sessions/open-store.ts'
import { duration } from '../terminal/amounts.ts'
import { colorsFor } from '../terminal/colors.ts'
import { printJson } from '../terminal/json.ts'
import { exact } from '../terminal/printable.ts'

export const command: CommandDefinition = {
  description: 'List the tool calls that wait for approval, in all sessions.',
  examples: ['hookloop approvals', 'hookloop approve 7c200b7e --resume'],
  configure: storeOptions,
  run: approvals,
}

function approvals(flags: StoreFlags, cli: CliContext): Promise<void> {
  const { command: name } = cli
  return withStore(flags, cli, async ({ store, options }) => {
    const pending = await pendingApprovals(store)
    if (flags.json === true)
      printJson(
        cli.out,
        pending.map((each) => ({ shortId: shortId(each, pending), ...each })),
      )
    else if (pending.length === 0) cli.err.write('No pending approvals.\n')
    else {
      cli.out.write(`${pending.map((each) => approvalText(each, pending, cli)).join('\n')}\n`)
      cli.err.write(`Answer with: ${name} approve <id>${options}, or ${name} block <id>${options} --reason "…"\n`)
    }
  })
}

function approvalText(approval: PendingApproval, all: readonly PendingApproval[], { out, env }: CliContext): string {
  const { bold, dim } = colorsFor(out, env)
  const { toolCall, message, by, session, expiresAt } = approval
  const expires = expiresAt === undefined ? '' : ` · ${expiryText(expiresAt - Date.now())}`
  return [
    `${bold(shortId(approval, all))}  ${exact(toolCall.name)} ${argumentsText(toolCall.args).replaceAll('\n', '\n  ')}`,
    `  ${exact(message)} ${dim(`(asked by ${exact(by)} in ${exact(session)}${expires})`)}`,
  ].join('\n')
}

function expiryText(ms: number): string {
  return ms <= 0 ? 'expired: it can only be blocked' : `expires in ${duration(ms)}`
}
