import { createInterface } from 'node:readline'
import type { AskedAnswer } from '../../agent/capability.ts'
import { isJsonObject } from '../../state/json.ts'
import type { Approval } from '../../state/tool-call.ts'
import type { Stdin } from './input.ts'
import { exact } from '../terminal/printable.ts'
import type { Screen } from '../terminal/screen.ts'

const MAX_ARGUMENTS = 4000
/** How long is listened for what was typed before the question could be read. */
const TYPED_AHEAD_MS = 50

export type Asking = {
  readonly screen: Screen
  readonly stdin: Stdin
  readonly signal: AbortSignal
  /** Whether a question may be left open, because the run is kept. */
  readonly mayWait?: boolean
  /** Whether a yes may come with other arguments. */
  readonly mayEdit?: boolean
}

/** Asks whoever sits at the terminal. What is not a yes is a no, and its reason. */
export async function askHere(approval: Approval, asking: Asking): Promise<AskedAnswer> {
  showQuestion(approval, asking.screen)
  await dropTypedAhead(asking.stdin)
  const lines = linesOf(asking.stdin, asking.signal)
  try {
    return await answerFrom(lines, { ...asking, mayEdit: approval.interruptions === undefined })
  } finally {
    lines.close()
  }
}

async function answerFrom(lines: Lines, { screen, mayWait = false, mayEdit = true }: Asking): Promise<AskedAnswer> {
  const ask = (question: string): Promise<string | undefined> => screen.ask(`  ${question} `, lines.next)
  for (;;) {
    const typed = (await ask(`Allow it? [y]es, [N]o${mayEdit ? ', [e]dit' : ''}${mayWait ? ', [l]ater' : ''}`))?.trim()
    switch (typed?.toLowerCase()) {
      case 'y':
      case 'yes':
        return 'allow'
      case 'e':
      case 'edit': {
        if (!mayEdit) continue
        const args = parseArguments((await ask('The arguments instead, as JSON on one line:')) ?? '')
        if (args !== undefined) return { allow: args }
        screen.line('  That is not a JSON object.')
        continue
      }
      case 'l':
      case 'later':
        return mayWait ? 'suspend' : refusal('')
      case 'n':
      case 'no':
        return refusal((await ask('Why not? The model is told.')) ?? '')
      default: // nothing when the input has ended or the run was cancelled
        return refusal(typed ?? '')
    }
  }
}

/** All of what is asked for, with what hides in it. */
function showQuestion({ toolCall, message, by, path }: Approval, screen: Screen): void {
  const { bold, dim, yellow } = screen.colors
  screen.line(`${yellow('?')} ${bold(exact(toolCall.name))} ${argumentWords(toolCall.args).replaceAll('\n', '\n  ')}`)
  const who = path === undefined ? '' : `, about ${path.map(({ agent }) => exact(agent)).join(' › ')}`
  screen.line(`  ${exact(message)} ${dim(`(asked by ${exact(by)}${who})`)}`)
}

export function argumentWords(args: unknown): string {
  const words = exact(JSON.stringify(args, undefined, 2) ?? '')
  return words.length > MAX_ARGUMENTS ? `${words.slice(0, MAX_ARGUMENTS)}… (${words.length} characters)` : words
}

export function parseArguments(text: string) {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function refusal(reason: string): AskedAnswer {
  return { block: reason.trim() === '' ? 'The user said no.' : `The user said no: ${reason.trim()}` }
}

/** A line that was typed before the question was on the screen is no answer to it. */
async function dropTypedAhead(stdin: Stdin): Promise<void> {
  if (stdin.isTTY !== true) return
  const drop = (): void => undefined
  stdin.on('data', drop)
  await new Promise((resolve) => setTimeout(resolve, TYPED_AHEAD_MS))
  stdin.off('data', drop).pause()
}

type Lines = { readonly next: () => Promise<string | undefined>; readonly close: () => void }

/** Line by line; nothing when the input has ended or the signal aborts. The terminal stays as it is: Ctrl-C is a signal. */
function linesOf(stdin: Stdin, signal: AbortSignal): Lines {
  const reader = createInterface({ input: stdin, terminal: false })
  const ready: string[] = []
  const over = Promise.withResolvers<void>()
  let arrived = Promise.withResolvers<void>()
  const end = (): void => over.resolve()
  reader.on('line', (line) => {
    ready.push(line)
    arrived.resolve()
  })
  reader.once('close', end)
  signal.addEventListener('abort', end, { once: true })
  if (signal.aborted) end()
  return {
    async next() {
      await Promise.race([arrived.promise, over.promise])
      const line = ready.shift()
      if (ready.length === 0) arrived = Promise.withResolvers<void>()
      return line
    },
    close() {
      signal.removeEventListener('abort', end)
      reader.close()
    },
  }
}
