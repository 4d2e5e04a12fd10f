import type { Document } from 'yaml'
import { yaml } from './yaml.ts'
import type { Json, JsonObject } from '../state/json.ts'
import { messageOf } from '../errors.ts'

/** The fields at the head of a Markdown file, and what follows them. */
export type FrontMatter = { readonly fields: JsonObject; readonly body: string }

export type FrontMatterOptions = {
  /** How long the head may be. Default 65,536 characters. */
  readonly maxChars?: number
  /** Whether `description: Use it when: …` is a text, as other programs take it, and not a mistake. Default false. */
  readonly plainTexts?: boolean
}

const MAX_CHARS = 65_536
const MAX_DEPTH = 16

/**
 * Reads the head of a Markdown file, which stands between two lines of `---`. A file without one has no fields. Only
 * plain values are read: aliases, tags, repeated keys and what is too long or too deep are refused. Throws an Error that
 * says in words what is wrong.
 */
export function readFrontMatter(text: string, options: FrontMatterOptions = {}): FrontMatter {
  const { maxChars = MAX_CHARS, plainTexts = false } = options
  const whole = text.startsWith('\uFEFF') ? text.slice(1) : text
  const begin = /^---[ \t]*(?:\r\n|\n|\r|$)/.exec(whole)
  if (begin === null) return { fields: {}, body: whole }
  const rest = whole.slice(begin[0].length)
  const end = /^(?:---|\.\.\.)[ \t]*$/m.exec(rest)
  if (end === null) throw new Error('the head begins with "---" and does not end')
  const head = rest.slice(0, end.index)
  if (head.length > maxChars) throw new Error(`the head has ${head.length} characters; at most ${maxChars} are read`)
  const body = rest.slice(end.index + end[0].length).replace(/^(?:\r\n|\n|\r)/, '')
  return { fields: plainTexts ? readTolerantly(head) : readFields(head), body }
}

/** The head as it stands, or else with its plain texts as texts. */
function readTolerantly(head: string): JsonObject {
  try {
    return readFields(head)
  } catch (error) {
    const quoted = head.replaceAll(PLAIN_LINE, (_line, key: string, value: string) => `${key} ${JSON.stringify(value)}`)
    if (quoted === head) throw error
    return readFields(quoted)
  }
}

/** A line at the left edge whose value is neither quoted nor a list, an object, a block or anything else with a sign. */
const PLAIN_LINE = /^([A-Za-z][\w-]*:)[ \t]+([^\s"'[\]{}|>&*!%@`#,?:-][^\r\n]*?)[ \t]*$/gm

function readFields(head: string): JsonObject {
  const document = parse(head)
  const problem = document.errors[0] ?? document.warnings[0]
  if (problem !== undefined)
    throw new Error(`the head cannot be read: ${problem.message.split('\n')[0]!.replace(/:$/, '')}`)
  const fields = toPlain(document.contents, 0)
  if (fields === null) return {}
  if (typeof fields !== 'object' || Array.isArray(fields)) throw new Error('the head is not a list of "key: value"')
  return fields as JsonObject
}

function parse(head: string): Document {
  try {
    return yaml().parseDocument(head, { version: '1.2', schema: 'core', strict: true, uniqueKeys: true, merge: false })
  } catch (error) {
    throw new Error(`the head cannot be read: ${messageOf(error)}`, { cause: error }) // it is too deep for the parser
  }
}

function toPlain(node: unknown, depth: number): Json {
  if (depth > MAX_DEPTH) throw new Error(`the head is more than ${MAX_DEPTH} levels deep`)
  if (node === null || node === undefined) return null
  const { isAlias, isMap, isScalar, isSeq } = yaml()
  if (isAlias(node)) throw new Error(`"*${node.source}" stands for something else in the head, which is not read`)
  if (isScalar(node)) return toPlainScalar(node.value)
  if (isSeq(node)) return node.items.map((item) => toPlain(item, depth + 1))
  if (!isMap(node)) throw new Error('the head holds something that is no plain value')
  const object: { [key: string]: Json } = {}
  for (const { key, value } of node.items) {
    const name = toPlain(key, depth + 1)
    if (typeof name === 'object' || name === '__proto__') throw new Error(`${JSON.stringify(name)} is no key`)
    object[String(name)] = toPlain(value, depth + 1)
  }
  return object
}

function toPlainScalar(value: unknown): Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw new Error(`the head holds a ${typeof value} that is no plain value`)
}
