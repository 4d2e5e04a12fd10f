import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { Answer, Approval } from '../data/tool-call.ts'
import { exact } from './printable.ts'
import type { Screen } from './screen.ts'

const MAX_ARGUMENTS = 4000
const DROP_MS = 50

type Typed = Readable & { readonly isTTY?: boolean }

/** Asks whoever sits at the terminal. What is not a yes is a no. */
export async function askHere(
  { toolCall, message, by }: Approval,
  { screen, stdin, signal }: { readonly screen: Screen; readonly stdin: Typed; readonly signal: AbortSignal },
): Promise<Answer> {
  await dropTypedAhead(stdin)
  const { bold, dim, yellow } = screen.colors
  const args = exact(JSON.stringify(toolCall.args, undefined, 2))
  const cut = args.length > MAX_ARGUMENTS ? `${args.slice(0, MAX_ARGUMENTS)}… (${args.length} characters)` : args
  screen.line(`${yellow('?')} ${bold(exact(toolCall.name))} ${cut.replaceAll('\n', '\n  ')}`)
  screen.line(`  ${exact(message)} ${dim(`(asked by ${exact(by)})`)}`)
  const typed = await screen.ask('  Allow it? [y/N] ', () => readLine(stdin, signal))
  return /^\s*y(es)?\s*$/i.test(typed ?? '') ? 'allow' : { block: 'The user said no.' }
}

/** What was typed before a question was asked is no answer to it. */
async function dropTypedAhead(stdin: Typed): Promise<void> {
  if (stdin.isTTY !== true) return
  const drop = (): void => undefined
  stdin.on('data', drop)
  await delay(DROP_MS)
  stdin.off('data', drop).pause()
}

/** One line, or nothing when the input ends or the signal aborts. The terminal stays as it is, so Ctrl-C is a signal. */
async function readLine(stdin: Readable, signal: AbortSignal): Promise<string | undefined> {
  const lines = createInterface({ input: stdin, terminal: false })
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const leave = (): void => resolve(undefined)
  lines.once('line', resolve).once('close', leave)
  signal.addEventListener('abort', leave, { once: true })
  if (signal.aborted) leave()
  try {
    return await promise
  } finally {
    signal.removeEventListener('abort', leave)
    lines.close()
  }
}
