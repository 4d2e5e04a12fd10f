import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HandlerAnswer } from './handler-answer.ts'

/** How long each text of an answer may be, and how much is shown of one that is longer. */
const MAX_TEXT = 10_000
const PREVIEW = 2_000

/** An answer whose texts are short: of a long one the beginning is shown, and all of it is in a file. */
export function shortenTexts(answer: HandlerAnswer): HandlerAnswer {
  const { context, systemMessage, wakes, block, permission, stop, problem, request } = answer
  const all = [
    context,
    systemMessage,
    wakes,
    block?.reason,
    permission?.reason,
    stop?.reason,
    problem,
    answer.other?.['initialUserMessage'],
    request?.behavior === 'deny' ? request.message : undefined,
  ]
  if (all.every((text) => typeof text !== 'string' || text.length <= MAX_TEXT)) return answer
  const initial = answer.other?.['initialUserMessage']
  return {
    ...answer,
    ...(context !== undefined && { context: shortened(context) }),
    ...(systemMessage !== undefined && { systemMessage: shortened(systemMessage) }),
    ...(wakes !== undefined && { wakes: shortened(wakes) }),
    ...(block !== undefined && { block: { ...block, reason: shortened(block.reason) } }),
    ...(permission !== undefined && { permission: { ...permission, reason: shortened(permission.reason) } }),
    ...(stop !== undefined && { stop: { reason: shortened(stop.reason) } }),
    ...(problem !== undefined && { problem: shortened(problem) }),
    ...(request?.behavior === 'deny' && { request: { ...request, message: shortened(request.message) } }),
    ...(typeof initial === 'string' && { other: { ...answer.other, initialUserMessage: shortened(initial) } }),
  }
}

function shortened(text: string): string {
  if (text.length <= MAX_TEXT) return text
  const cut = text.slice(0, PREVIEW)
  const shown = cut.isWellFormed() ? cut : cut.slice(0, -1)
  return `${shown}\n[These are the first ${shown.length} of ${text.length} characters. All of it is in ${kept(text)}]`
}

let folder: string | undefined
let count = 0

/** Nobody else may read what hooks say. The files stay: a model reads them when it likes. */
function kept(text: string): string {
  try {
    folder ??= mkdtempSync(join(tmpdir(), 'hookloop-hook-output-'))
    const file = join(folder, `${++count}.txt`)
    writeFileSync(file, text, { mode: 0o600 })
    return file
  } catch {
    return 'no file, because none could be written'
  }
}
