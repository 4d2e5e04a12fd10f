import { createInterface } from 'node:readline'
import { textOf, type Message } from '../../core/state/message.ts'
import { AgentError } from '../../errors.ts'
import { isInteractive, type CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { resumeOptions, runOptions, sessionOptions } from '../options.ts'
import { commandNames, isExit, isMessage, runChatCommand } from '../run/chat-commands.ts'
import { Conversation } from '../run/conversation.ts'
import { continueLine } from '../run/next-steps.ts'
import { openSession, prepareRun, type SessionTarget } from '../run/prepare-run.ts'
import { colorsFor } from '../terminal/colors.ts'
import { LineEditor, type Typed } from '../terminal/line-editor.ts'
import { note } from '../terminal/note.ts'
import { printable } from '../terminal/printable.ts'
import { wrapExplanation } from '../terminal/wrap.ts'
import type { ResumeFlags } from './resume.ts'

type ChatFlags = ResumeFlags & { readonly session?: string }

export const command: CommandDefinition = {
  description:
    'Talk to an agent at a terminal; type /help for commands. In a pipe, each line is a message. ' +
    'A run of the session that was suspended or interrupted is resumed first.',
  examples: ['hookloop chat --agent agent.ts', 'hookloop chat --session k53u-6qg8'],
  configure: (command) => runOptions(resumeOptions(sessionOptions(command))),
  run: chat,
}

export async function chat(flags: ChatFlags, cli: CliContext): Promise<ExitCode> {
  const target = await openSession(flags, cli)
  const { saved } = target
  try {
    const isTyped = flags.json !== true && isInteractive(cli)
    const conversation = new Conversation(await prepareRun(flags, { cli, target }), { flags, cli })
    const deniesWaiting = flags.onNewInput === 'block' && saved?.open?.pending !== undefined
    if (saved?.open !== undefined && !deniesWaiting) {
      const resumed = await conversation.resume(saved.open)
      if (resumed === undefined || conversation.isBlockedBy(resumed.run)) return exitCodes.suspended
    }
    const code = await (isTyped ? typed(conversation, target, cli) : piped(conversation, cli))
    const interrupted = await conversation.end('exit')
    if (isTyped && target.isEphemeral !== true && (conversation.hasRun || saved !== undefined)) {
      note(continueLine(conversation.ref), flags, cli)
    }
    return interrupted ?? code
  } finally {
    await target.store.close()
  }
}

/** Each line is a message. A run that does not complete ends the conversation: the next lines may depend on it. */
async function piped(conversation: Conversation, { stdin }: CliContext): Promise<ExitCode> {
  for await (const line of createInterface({ input: stdin, crlfDelay: Infinity })) {
    if (line.trim() === '') continue
    const { run, code } = await conversation.send(line)
    if (run.status !== 'completed' && (run.status !== 'suspended' || conversation.isBlockedBy(run))) return code
  }
  return exitCodes.completed
}

/** Until Ctrl-D, /exit, or Ctrl-C twice. */
async function typed(conversation: Conversation, target: SessionTarget, cli: CliContext): Promise<ExitCode> {
  const { stdin, err, env } = cli
  const { bold, dim } = colorsFor(err, env)
  const history = messagesIn(target.saved).flatMap(({ role, content }) =>
    role === 'user' ? [textOf(content).replaceAll('\n', ' ')] : [],
  )
  const editor = new LineEditor({ stdin, output: err, history, words: commandNames(conversation) })
  const model = printable(await conversation.model())
  err.write(dim(`${conversation.ref.session} · ${model} · /help lists commands, Ctrl-D exits\n`))
  let before: Typed | undefined
  for (;;) {
    const line = await editor.read(bold('› '))
    if (line === 'ended' || (line === 'interrupted' && before === 'interrupted')) break
    if (line === 'interrupted') {
      before = line
      err.write(dim('\nPress Ctrl-C again, or Ctrl-D, to exit.\n'))
      continue
    }
    before = undefined
    if (isExit(line.text)) return exitCodes.completed
    if (line.text.trim() === '') continue
    if (await isSuspendedBy(() => answer(line.text, conversation, cli), cli)) return exitCodes.suspended
  }
  err.write('\n')
  return exitCodes.completed
}

/** The messages of a session: the state does not have the input of a run before its first step is closed. */
function messagesIn(saved: SessionTarget['saved']): readonly Message[] {
  const { state, open } = saved ?? {}
  const messages = state?.messages ?? []
  const input = state?.execution?.status === 'running' ? undefined : open?.input?.message
  return input === undefined ? messages : [...messages, input]
}

/** Whether a turn leaves the run suspended. An error is printed, and the conversation continues. */
async function isSuspendedBy(turn: () => Promise<boolean>, { err, env }: CliContext): Promise<boolean> {
  try {
    return await turn()
  } catch (thrown) {
    if (!(thrown instanceof AgentError)) throw thrown
    err.write(`${colorsFor(err, env).red('error:')} ${printable(thrown.message)}\n`)
    return false
  }
}

async function answer(text: string, conversation: Conversation, { err }: CliContext): Promise<boolean> {
  if (isMessage(text, conversation)) return conversation.isBlockedBy((await conversation.send(text.trim())).run)
  err.write(`${wrapExplanation(printable(await runChatCommand(text, conversation)), err.columns)}\n`)
  return false
}
