import { createInterface } from 'node:readline'
import { textOf } from '../../state/message.ts'
import { AgentError } from '../../errors.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { commandNames, isExit, isSaid, perform } from '../run/chat-commands.ts'
import { colorsFor } from '../terminal/colors.ts'
import { Conversation } from '../run/conversation.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { newSessionId, readKept } from '../sessions/find-session.ts'
import { LineEditor, type Typed } from '../terminal/line-editor.ts'
import { hasPerson, type Place } from '../cli-context.ts'
import { note, prepare, type Keeping } from '../run/prepare-run.ts'
import { oneLine, printable } from '../terminal/printable.ts'
import { goOn, type ResumeFlags } from './resume.ts'
import { storeFor } from '../sessions/open-store.ts'
import { Wakes } from '../run/wake-queue.ts'

export type ChatFlags = ResumeFlags & { readonly session?: string }

/** `hookloop chat`: a conversation, line by line, from a terminal or a pipe. */
export async function chat(flags: ChatFlags, place: Place): Promise<ExitCode> {
  const keeping = await sessionFor(flags, place)
  const { kept } = keeping
  try {
    const isTyped = flags.json !== true && hasPerson(place)
    const wakes = isTyped ? new Wakes() : undefined
    const prepared = await prepare(flags, { place, keeping, ...(wakes !== undefined && { onWake: wakes.add }) })
    const conversation = new Conversation(prepared, { flags, place })
    if (kept?.open !== undefined) {
      const resumed = await goOn(prepared, {
        kept,
        open: kept.open,
        conversation: conversation.session,
        flags,
        place,
      })
      if (resumed === undefined || resumed.ended.status === 'suspended') return exitCodes.suspended
      conversation.goneOnWith(resumed.ended)
    }
    const code =
      wakes === undefined ? await piped(conversation, place) : await typed(conversation, { keeping, place, wakes })
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

type Talk = { readonly keeping: Keeping; readonly place: Place; readonly wakes: Wakes }

/** Until Ctrl-D, /exit, or Ctrl-C twice. */
async function typed(conversation: Conversation, { keeping, place, wakes }: Talk): Promise<ExitCode> {
  const { stdin, err, env } = place
  const { bold, dim } = colorsFor(err, env)
  const history = (keeping.kept?.state?.messages.slice() ?? []).flatMap(({ role, content }) =>
    role === 'user' ? [textOf(content).replaceAll('\n', ' ')] : [],
  )
  const editor = new LineEditor({ stdin, output: err, history, words: commandNames(conversation) })
  err.write(
    dim(
      `${conversation.way.session} · ${printable(await conversation.model())} · /help lists commands, Ctrl-D leaves\n`,
    ),
  )
  let before: Typed | undefined
  let left = ''
  for (;;) {
    const line = await editor.read(bold('› '), { until: wakes.signal, typed: left })
    left = ''
    if (line === 'ended' || (line === 'interrupted' && before === 'interrupted')) break
    if (line === 'interrupted') {
      before = line
      err.write(dim('\nCtrl-C again, or Ctrl-D, leaves.\n'))
      continue
    }
    before = undefined
    if ('left' in line) {
      left = line.left
      if (await tried(() => heard(conversation, wakes, place), place)) return exitCodes.suspended
      continue
    }
    if (isExit(line.text)) return exitCodes.completed
    if (line.text.trim() === '') continue
    wakes.reset()
    if (await tried(() => answer(line.text, conversation, place), place)) return exitCodes.suspended
  }
  err.write('\n')
  return exitCodes.completed
}

/** What comes of a turn. A mistake is told, and the conversation goes on. */
async function tried(turn: () => Promise<boolean>, { err, env }: Place): Promise<boolean> {
  try {
    return await turn()
  } catch (thrown) {
    if (!(thrown instanceof AgentError)) throw thrown
    err.write(`${colorsFor(err, env).red('error:')} ${printable(thrown.message)}\n`)
    return false
  }
}

/** Whether the conversation waits for somebody now. */
async function answer(text: string, conversation: Conversation, { err }: Place): Promise<boolean> {
  if (isSaid(text, conversation)) return (await conversation.say(text.trim())).ended.status === 'suspended'
  err.write(`${printable(await perform(text, conversation))}\n`)
  return false
}

/** The same after the model was told what hooks in the background have said, if it has not heard it yet. */
async function heard(conversation: Conversation, wakes: Wakes, { err, env }: Place): Promise<boolean> {
  const { dim, yellow } = colorsFor(err, env)
  const words = wakes.take(conversation.way.session)
  if (words === 'tired')
    err.write(dim('Hooks have woken the model often enough: it hears them with your next message.\n'))
  if (words === 'tired' || words.length === 0) return false
  for (const each of words) err.write(`${yellow('!')} ${dim('a hook wakes the model:')} ${oneLine(each, 200)}\n`)
  return (await conversation.wake()).ended.status === 'suspended'
}
