import { on } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AskedAnswer, Capability } from '../../core/agent/capability.ts'
import { approval } from '../../capabilities/approval.ts'
import { inexactNumber, isJsonObject, type JsonObject } from '../../values/json.ts'
import type { Approval } from '../../core/state/tool-call.ts'
import { abortable } from '../../system/timeout.ts'
import type { Stdin } from '../cli-context.ts'
import type { LiveView } from '../terminal/live-view.ts'
import { exact } from '../terminal/printable.ts'
import type { Screen } from '../terminal/screen.ts'

/** How long input that was typed before the question appeared is discarded. */
const TYPED_AHEAD_MS = 50

export type AskOptions = {
  readonly screen: Screen
  readonly stdin: Stdin
  readonly signal: AbortSignal
  /** Whether the question can be answered later, because the run is stored. */
  readonly canSuspend?: boolean
}

/** Asks the user at the terminal for approvals, on the screen of the run that is shown. */
export type TerminalApprover = {
  readonly capability: Capability
  /** Sets the screen to ask on. With a live view, a question waits until everything before it is shown. */
  readonly attach: (shown: { readonly screen: Screen; readonly view?: LiveView }) => void
}

export function terminalApprover(options: Pick<AskOptions, 'stdin' | 'canSuspend'>): TerminalApprover {
  let shown: Parameters<TerminalApprover['attach']>[0]
  return {
    attach: (given) => void (shown = given),
    capability: approval(async (question, signal) => {
      await shown.view?.reached(question)
      return askApproval(question, { ...options, screen: shown.screen, signal })
    }),
  }
}

/** Asks the user at the terminal. Any answer but yes is a block, with the typed text as the reason. */
export async function askApproval(approval: Approval, options: AskOptions): Promise<AskedAnswer> {
  showApproval(approval, options.screen)
  await discardTypedAhead(options.stdin)
  const lines = linesOf(options.stdin, options.signal)
  try {
    return await readAnswer(lines, options, approval)
  } finally {
    lines.close()
  }
}

async function readAnswer(
  lines: Lines,
  { screen, canSuspend = false }: AskOptions,
  { interruptions, trigger }: Approval,
): Promise<AskedAnswer> {
  const canEdit = interruptions === undefined && trigger === undefined
  const what = trigger === undefined ? 'this call' : 'this'
  const ask = (question: string): Promise<string | undefined> => screen.ask(`  ${question} `, lines.next)
  for (;;) {
    const choices = `[y]es, [N]o${canEdit ? ', [e]dit' : ''}${canSuspend ? ', [l]ater' : ''}`
    const typed = (await ask(`Allow ${what}? ${choices}`))?.trim()
    switch (typed?.toLowerCase()) {
      case 'y':
      case 'yes':
        return 'allow'
      case 'e':
      case 'edit': {
        if (!canEdit) continue
        const args = parseArguments((await ask('New arguments, as JSON on one line:')) ?? '')
        if (typeof args === 'object') return { allow: args }
        screen.line(`  ${exact(args)}`)
        continue
      }
      case 'l':
      case 'later':
        return canSuspend ? 'suspend' : block(what, '')
      case 'n':
      case 'no':
        return block(what, (await ask('Reason (the model receives it):')) ?? '')
      default: // undefined when the input has ended or the run was cancelled
        return block(what, typed ?? '')
    }
  }
}

/** The complete call, with invisible characters made visible. */
function showApproval({ toolCall, message, by, path }: Approval, screen: Screen): void {
  const { bold, dim, yellow } = screen.colors
  screen.line(`${yellow('?')} ${bold(exact(toolCall.name))} ${argumentsText(toolCall.args).replaceAll('\n', '\n  ')}`)
  const agents = path === undefined ? '' : ` for ${path.map(({ agent }) => exact(agent)).join(' › ')}`
  screen.line(`  ${exact(message)} ${dim(`(asked by ${exact(by)}${agents})`)}`)
}

/** Complete, however long they are: what is left out could be what matters. */
export function argumentsText(args: unknown): string {
  return exact(JSON.stringify(args, undefined, 2) ?? '')
}

/** The arguments, or what is wrong with the text. */
export function parseArguments(text: string): JsonObject | string {
  const number = inexactNumber(text)
  if (number !== undefined) return `${number} cannot be represented exactly. Write it as a string.`
  try {
    const value: unknown = JSON.parse(text)
    if (isJsonObject(value)) return value
  } catch {
    // reported below
  }
  return 'Not a JSON object.'
}

function block(what: string, reason: string): AskedAnswer {
  return { block: reason.trim() === '' ? `The user blocked ${what}.` : `The user blocked ${what}: ${reason.trim()}` }
}

/** A line that was typed before the question appeared must not answer it. */
async function discardTypedAhead(stdin: Stdin): Promise<void> {
  if (stdin.isTTY !== true) return
  const discard = (): void => undefined
  stdin.on('data', discard)
  await sleep(TYPED_AHEAD_MS)
  stdin.off('data', discard).pause()
}

type Lines = { readonly next: () => Promise<string | undefined>; readonly close: () => void }

/** Lines; undefined when the input has ended or the signal aborts. The terminal mode does not change: Ctrl-C is a signal. */
function linesOf(stdin: Stdin, signal: AbortSignal): Lines {
  const reader = createInterface({ input: stdin, terminal: false })
  const lines = on(reader, 'line', { close: ['close'] })
  return {
    async next() {
      const line = await abortable(lines.next(), signal).catch(() => undefined)
      return line === undefined || line.done === true ? undefined : (line.value as [string])[0]
    },
    close: () => reader.close(),
  }
}
