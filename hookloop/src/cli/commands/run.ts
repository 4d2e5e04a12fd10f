import { Option } from 'commander'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodeTable, type ExitCode } from '../exit-codes.ts'
import { collect, runOptions, sessionOptions } from '../options.ts'
import { AgentError } from '../../errors.ts'
import { Conversation } from '../run/conversation.ts'
import { readInput } from '../run/input.ts'
import { unfinishedLines } from '../run/next-steps.ts'
import { openSession, prepareRun, type CommandFlags } from '../run/prepare-run.ts'
import type { ShowFlags } from '../run/watch-run.ts'
import { UsageError } from '../usage-error.ts'

type RunFlags = CommandFlags & ShowFlags & { readonly file?: readonly string[]; readonly session?: string }

export const command: CommandDefinition = {
  description:
    'Run an agent once. The answer is printed to stdout, everything else to stderr. The run is saved as a session.',
  examples: [
    'hookloop run "Why is the sky blue?" --model ollama/llama3.2',
    'git diff | hookloop run "Review this" --model anthropic/claude-sonnet-5-5 --quiet',
    'hookloop run "Repair the build" --agent agent.ts --max-cost 0.50 --explain',
  ],
  notes: ['Exit codes:', ...exitCodeTable.map(([code, meaning]) => `  ${String(code).padEnd(4)} ${meaning}`)].join(
    '\n',
  ),
  configure: (command) =>
    runOptions(
      sessionOptions(command)
        .argument('[input...]', 'message to the agent; "-" or a pipe reads it from stdin')
        .option('-f, --file <path>', 'image, document or text file to attach; can be repeated', collect)
        .addOption(new Option('--init', 'run the Setup hooks first, with the trigger init').conflicts('maintenance'))
        .option('--maintenance', 'run the Setup hooks first, with the trigger maintenance'),
    ),
  run,
}

export async function run(words: readonly string[], flags: RunFlags, cli: CliContext): Promise<ExitCode> {
  const input = await readInput(words, { ...cli, files: flags.file ?? [] })
  const target = await openSession(flags, cli)
  try {
    if (target.isEphemeral === true && flags.session !== undefined) {
      throw new UsageError('--session needs a session store, but --no-store or HOOKLOOP_STORE=none turns it off.')
    }
    const conversation = new Conversation(await prepareRun(flags, { cli, target }), { flags, cli })
    const { code } = await conversation.send(input, { showsRef: true })
    return (await conversation.end()) ?? code
  } catch (thrown) {
    const isUnfinished = thrown instanceof AgentError && thrown.code === 'STATE_SUSPENDED'
    const { saved, session, options } = target
    if (!isUnfinished || saved === undefined) throw thrown
    throw new UsageError(unfinishedLines(saved, { session, command: cli.command, options }))
  } finally {
    await target.store.close()
  }
}
