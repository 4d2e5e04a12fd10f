import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isJsonObject, type Json } from '../../../values/json.ts'
import type { HandlerAnswer } from './handler-answer.ts'
import { eventSpec } from '../events/claude-events.ts'
import { stringIn } from '../../text.ts'
import type { Payload } from '../events/common-payload.ts'

/** Removes the parts of an answer that have no effect at its event, and shortens long texts. */
export function limitToEvent(answer: HandlerAnswer, payload: Payload): HandlerAnswer {
  return shortenTexts(withOutput(withBlock(answer, payload), payload))
}

/** Where nothing can be blocked, a block is a warning or ignored. */
function withBlock(answer: HandlerAnswer, { event, input }: Payload): HandlerAnswer {
  if (answer.block === undefined) return answer
  const { block, ...rest } = answer
  const { block: effect } = eventSpec(event)
  const isPolicy = event === 'ConfigChange' && input['source'] === 'policy_settings' // settings of an organisation cannot be blocked
  if (effect === 'ignored' || isPolicy) return rest
  if (effect !== 'warns') return answer
  const problem = [block.reason, rest.problem ?? ''].filter((text) => text !== '').join('\n')
  return { ...rest, ...(problem !== '' && { problem }) }
}

/** A new output must have the shape of the original one. `updatedMCPToolOutput` is the older name, for MCP tools only. */
function withOutput(answer: HandlerAnswer, { input }: Payload): HandlerAnswer {
  const { updatedOutput, other: { updatedMCPToolOutput, ...other } = {}, ...rest } = answer
  const isMcp = stringIn(input['tool_name']).startsWith('mcp__')
  const given = updatedOutput ?? (isMcp ? updatedMCPToolOutput : undefined)
  const limited = { ...rest, ...(Object.keys(other).length > 0 && { other }) }
  if (given === undefined) return limited
  if (isMcp || isAlike(input['tool_response'], given)) return { ...limited, updatedOutput: given }
  return {
    ...limited,
    problem: limited.problem ?? 'its "updatedToolOutput" is ignored: it does not have the shape of the output',
  }
}

function isAlike(before: Json | undefined, after: Json): boolean {
  if (before === undefined || before === null) return true
  if (kindOf(before) !== kindOf(after)) return false
  if (!isJsonObject(before) || !isJsonObject(after)) return true
  return Object.entries(after).every(([key, value]) => {
    const old = before[key]
    return old === undefined || old === null || value === null || kindOf(old) === kindOf(value)
  })
}

function kindOf(value: Json): string {
  return Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value
}

const MAX_TEXT = 10_000
const PREVIEW = 2_000

/** Shortens the long texts of an answer. The model gets the start of a text, and a file with all of it. */
function shortenTexts(answer: HandlerAnswer): HandlerAnswer {
  const { block, permission, stop, request, other } = answer
  const initialUserMessage = other?.['initialUserMessage']
  return {
    ...answer,
    ...shortened(answer, 'context', 'systemMessage', 'problem'),
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
