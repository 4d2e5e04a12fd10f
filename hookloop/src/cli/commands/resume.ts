import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { resumeOptions, latestSessionArgument, runOptions } from '../options.ts'
import { Conversation, type ConversationFlags } from '../run/conversation.ts'
import { prepareRun, type CommandFlags } from '../run/prepare-run.ts'
import { selectingOptions } from '../run/session-options.ts'
import { loadSession } from '../sessions/find-session.ts'
import { withStore } from '../sessions/open-store.ts'
import { note } from '../terminal/note.ts'
import { UsageError } from '../usage-error.ts'
import { jsonText } from '../terminal/json.ts'
import { shellQuote } from '../terminal/shell-quote.ts'

export type ResumeFlags = CommandFlags & ConversationFlags

export const command: CommandDefinition = {
  description:
    'Resume a run that was suspended for approval, or whose process crashed. Finished work is not repeated. ' +
    'At a terminal, pending approvals are asked first.',
  examples: ['hookloop resume', 'hookloop resume k53u-6qg8 --accept-missing no-push'],
  configure: (command) => runOptions(resumeOptions(latestSessionArgument(command))),
  run: resume,
}

export function resume(given: string | undefined, flags: ResumeFlags, cli: CliContext): Promise<ExitCode> {
  return withStore(flags, cli, async (opened) => {
    const { id: session, saved } = await loadSession(opened.store, given)
    const selected = selectingOptions(opened.options, flags, { saved, env: cli.env })
    const chat = `${cli.command} chat --session ${shellQuote(session)}${selected}`
    if (saved.open === undefined && !saved.isSuspended) {
      throw new UsageError(`The session "${session}" has no run to resume. Continue it with: ${chat}`)
    }
    const prepared = await prepareRun(flags, { cli, target: { ...opened, session, saved } })
    if (saved.open === undefined) {
      // the session was suspended between two runs
      await prepared.session.resume()
      if (flags.json === true) cli.out.write(`${jsonText({ type: 'result', status: 'idle', session })}\n`)
      note(`${session} is resumed. Continue it with: ${chat}`, flags, cli)
      return exitCodes.completed
    }
    const conversation = new Conversation(prepared, { flags, cli })
    const resumed = await conversation.resume(saved.open)
    return (await conversation.end()) ?? resumed?.code ?? exitCodes.suspended
  })
}
