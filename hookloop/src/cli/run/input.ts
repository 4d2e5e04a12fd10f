import { fstatSync } from 'node:fs'
import { addAbortSignal } from 'node:stream'
import type { Message, Part } from '../../core/state/message.ts'
import type { Stdin } from '../cli-context.ts'
import { attachment } from './attachments.ts'
import type { Output } from '../terminal/screen.ts'
import { UsageError } from '../usage-error.ts'

const MAX_CHARACTERS = 20 * 1024 * 1024
/** After this time a note on a terminal says that stdin is being read. */
const NOTE_AFTER_MS = 2000
/** How long an open socket has to deliver the first byte, see below. */
const SOCKET_MS = 1000

type InputOptions = {
  readonly files: readonly string[]
  readonly stdin: Stdin
  readonly err: Output
  readonly command: string
}

/** The user message: the words of the command line, then what was piped in, then files. */
export async function readInput(words: readonly string[], options: InputOptions): Promise<Message> {
  const typed = words.filter((word) => word !== '-').join(' ')
  const isWanted = words.includes('-')
  const piped = await readPiped(options, { isWanted, isOptional: !isWanted && typed !== '' })
  const texts = [typed, piped].map((part) => part.trim()).filter((part) => part !== '')
  const files = await Promise.all(options.files.map(attachment))
  if (texts.length === 0 && files.length === 0) throw noInput(options.command)
  const textParts: Part[] = texts.length === 0 ? [] : [{ type: 'text', text: texts.join('\n\n') }]
  return { role: 'user', content: [...textParts, ...files] }
}

type PipedOptions = {
  /** Reads from a terminal as well. */
  readonly isWanted?: boolean
  /** There is other input. */
  readonly isOptional?: boolean
}

/** Everything that is piped in; empty at a terminal. */
export async function readPiped(
  { stdin, err }: Pick<InputOptions, 'stdin' | 'err'>,
  { isWanted = false, isOptional = false }: PipedOptions = {},
): Promise<string> {
  const kind = kindOf(stdin)
  if (!isWanted && (kind === 'terminal' || kind === 'nothing')) return ''
  // Programs that start others often leave them an open socket that is never written to or closed.
  return readAll(stdin, err, isOptional && kind === 'socket' ? SOCKET_MS : undefined)
}

function kindOf({ isTTY, fd }: Stdin): 'terminal' | 'pipe' | 'socket' | 'nothing' {
  if (isTTY === true) return 'terminal'
  if (fd === undefined) return 'pipe' // a stream of this process
  try {
    const stats = fstatSync(fd)
    if (stats.isSocket()) return 'socket'
    return stats.isFIFO() || stats.isFile() ? 'pipe' : 'nothing'
  } catch {
    return 'nothing' // closed
  }
}

async function readAll(stdin: Stdin, err: Output, firstWithinMs?: number): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const timeout = new AbortController()
  const timer = firstWithinMs === undefined ? undefined : setTimeout(() => timeout.abort(), firstWithinMs)
  const note = setTimeout(() => {
    if (err.isTTY === true) err.write('Reading stdin until it ends …\n')
  }, NOTE_AFTER_MS)
  let text = ''
  try {
    for await (const piece of addAbortSignal(timeout.signal, stdin)) {
      clearTimeout(timer)
      text += decoder.decode(piece as Uint8Array, { stream: true })
      if (text.length > MAX_CHARACTERS) throw new UsageError('The piped input is longer than 20 MB.')
    }
    return text + decoder.decode()
  } catch (thrown) {
    if (timeout.signal.aborted) return ''
    if (thrown instanceof TypeError) throw new UsageError('The piped input is not text. Pass images with --file.')
    throw thrown
  } finally {
    clearTimeout(timer)
    clearTimeout(note)
  }
}

function noInput(command: string): UsageError {
  return new UsageError(
    `No input. Examples:\n` +
      `  ${command} run "Why is the sky blue?" --model ollama/llama3.2\n` +
      `  git diff | ${command} run "Review this" --model ollama/llama3.2`,
  )
}
