import { createInterface } from 'node:readline'
import { textOf } from '../../data/message.ts'
import { AgentError } from '../../errors.ts'
import { memoryStore } from '../../sessions/memory-store.ts'
import { commandNames, isExit, isSaid, perform } from './chat-commands.ts'
import { colorsFor } from '../terminal/colors.ts'
import { Conversation } from './conversation.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { newSessionId, readKept } from '../kept/kept.ts'
import { LineEditor, type Typed } from '../terminal/line-editor.ts'
import { hasPerson, type Place } from '../place.ts'
import { note, prepare, type Keeping } from './prepare.ts'
import { printable } from '../terminal/printable.ts'
import { goOn, type ResumeFlags } from './resume.ts'
import { storeFor } from '../kept/store-for.ts'

export type ChatFlags = ResumeFlags & { readonly session?: string }

/** `hookloop chat`: a conversation, line by line, from a terminal or a pipe. */
export async function chat(flags: ChatFlags, place: Place): Promise<ExitCode> {
  const keeping = await sessionFor(flags, place)
  const { kept } = keeping
  try {
    const prepared = await prepare(flags, { place, keeping })
    if (kept?.open !== undefined) {
      const resumed = await goOn(prepared, { kept, open: kept.open, flags, place })
      if (resumed === undefined || resumed.ended.status === 'suspended') return exitCodes.suspended
    }
    const conversation = new Conversation(prepared, { flags, place })
    const isTyped = flags.json !== true && hasPerson(place)
    const code = isTyped ? await typed(conversation, keeping, place) : await piped(conversation, place)
    await conversation.end()
    if (isTyped && keeping.isPassing !== true && (conversation.hasBegun || kept !== undefined)) {
      const { session, command, flags: more } = conversation.way
      note(`kept as ${session} · go on with: ${command} chat --session ${session}${more}`, flags, place)
    }
    return code
  } finally {
    await keeping.store.close()
  }
}

async function sessionFor(flags: ChatFlags, place: Place): Promise<Keeping> {
  const opened = await storeFor(flags, place.env)
  if (opened === undefined) {
    const session = flags.session ?? 'chat'
    return { store: memoryStore(), isDefault: true, flags: '', session, isPassing: true }
  }
  if (flags.session === undefined) return { ...opened, session: await newSessionId(opened.store) }
  return { ...opened, session: flags.session, kept: await readKept(opened.store, flags.session) }
}

/** One line is one message. What does not end well ends it: what follows was meant for another conversation. */
async function piped(conversation: Conversation, { stdin }: Place): Promise<ExitCode> {
  for await (const line of createInterface({ input: stdin, crlfDelay: Infinity })) {
    if (line.trim() === '') continue
    const { ended, code } = await conversation.say(line)
    if (ended.status !== 'completed') return code
  }
  return exitCodes.completed
}

/** Until Ctrl-D, /exit, or Ctrl-C twice. */
async function typed(conversation: Conversation, { kept }: Keeping, place: Place): Promise<ExitCode> {
  const { stdin, err, env } = place
  const { bold, dim, red } = colorsFor(err, env)
  const history = (kept?.state?.messages.slice() ?? []).flatMap(({ role, content }) =>
    role === 'user' ? [textOf(content).replaceAll('\n', ' ')] : [],
  )
  const editor = new LineEditor({ stdin, output: err, history, words: commandNames(conversation) })
  err.write(
    dim(
      `${conversation.way.session} · ${printable(await conversation.model())} · /help lists commands, Ctrl-D leaves\n`,
    ),
  )
  let before: Typed | undefined
  for (;;) {
    const line = await editor.read(bold('› '))
    if (line === 'ended' || (line === 'interrupted' && before === 'interrupted')) break
    before = line
    if (line === 'interrupted') {
      err.write(dim('\nCtrl-C again, or Ctrl-D, leaves.\n'))
      continue
    }
    if (isExit(line.text)) return exitCodes.completed
    if (line.text.trim() === '') continue
    try {
      const suspended = await answer(line.text, conversation, place)
      if (suspended) return exitCodes.suspended
    } catch (thrown) {
      if (!(thrown instanceof AgentError)) throw thrown
      err.write(`${red('error:')} ${printable(thrown.message)}\n`)
    }
  }
  err.write('\n')
  return exitCodes.completed
}

/** Whether the conversation waits for somebody now. */
async function answer(text: string, conversation: Conversation, { err }: Place): Promise<boolean> {
  if (isSaid(text, conversation)) return (await conversation.say(text.trim())).ended.status === 'suspended'
  err.write(`${printable(await perform(text, conversation))}\n`)
  return false
}
