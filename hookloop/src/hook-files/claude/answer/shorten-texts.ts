import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HandlerAnswer } from './handler-answer.ts'

const MAX_TEXT = 10_000
const PREVIEW = 2_000

/** Shortens the long texts of an answer. The model gets the start of a text, and a file with all of it. */
export function shortenTexts(answer: HandlerAnswer): HandlerAnswer {
  const { block, permission, stop, request, other } = answer
  const initialUserMessage = other?.['initialUserMessage']
  return {
    ...answer,
    ...shortened(answer, 'context', 'systemMessage', 'wakes', 'problem'),
    ...(block && { block: { ...block, ...shortened(block, 'reason') } }),
    ...(permission && { permission: { ...permission, ...shortened(permission, 'reason') } }),
    ...(stop && { stop: shortened(stop, 'reason') }),
    ...(request?.behavior === 'deny' && { request: { ...request, ...shortened(request, 'message') } }),
    ...(initialUserMessage !== undefined && { other: { ...other, ...shortened(other!, 'initialUserMessage') } }),
  }
}

function shortened<T extends object, K extends keyof T>(texts: T, ...names: readonly K[]): Pick<T, K> {
  const entries = names.flatMap((name) => {
    const text = texts[name]
    return text === undefined ? [] : [[name, typeof text === 'string' ? shorten(text) : text]]
  })
  return Object.fromEntries(entries) as Pick<T, K>
}

function shorten(text: string): string {
  if (text.length <= MAX_TEXT) return text
  const cut = text.slice(0, PREVIEW)
  const shown = cut.isWellFormed() ? cut : cut.slice(0, -1)
  return `${shown}\n[These are the first ${shown.length} of ${text.length} characters. The complete text is in ${store(text)}]`
}

let folder: string | undefined
let count = 0

/** Only the user can read the files. They are not deleted: the model may read them later. */
function store(text: string): string {
  try {
    folder ??= mkdtempSync(join(tmpdir(), 'hookloop-hook-output-'))
    const file = join(folder, `${++count}.txt`)
    writeFileSync(file, text, { mode: 0o600 })
    return file
  } catch {
    return 'no file, because it could not be written'
  }
}
