import type { Document } from 'yaml'
import { loadYaml } from '../../values/packages.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import { problemOf } from '../../errors.ts'

/** The front matter fields of a Markdown file, and the text after them. */
type FrontMatter = { readonly fields: JsonObject; readonly body: string }

type FrontMatterOptions = {
  /** Whether `description: Use it when: …` is read as text, as other programs do, instead of being an error. Default false. */
  readonly plainTexts?: boolean
}

const MAX_CHARS = 65_536
const MAX_DEPTH = 16

/**
 * Reads the YAML front matter of a Markdown file, between two lines of `---`. A file without it has no fields. Aliases, tags,
 * repeated keys and front matter that is too long or too deep are rejected. Throws an Error that says what is wrong.
 */
export function readFrontMatter(text: string, { plainTexts = false }: FrontMatterOptions = {}): FrontMatter {
  const all = text.startsWith('\uFEFF') ? text.slice(1) : text
  const begin = /^---[ \t]*(?:\r\n|\n|\r|$)/.exec(all)
  if (begin === null) return { fields: {}, body: all }
  const rest = all.slice(begin[0].length)
  const end = /^(?:---|\.\.\.)[ \t]*$/m.exec(rest)
  if (end === null) throw new Error('the front matter starts with "---" and has no end')
  const head = rest.slice(0, end.index)
  if (head.length > MAX_CHARS)
    throw new Error(`the front matter has ${head.length} characters; the maximum is ${MAX_CHARS}`)
  const body = rest.slice(end.index + end[0].length).replace(/^(?:\r\n|\n|\r)/, '')
  return { fields: plainTexts ? readTolerantly(head) : readFields(head), body }
}

/** Reads the front matter as it is, or else with its unquoted values quoted. */
function readTolerantly(head: string): JsonObject {
  try {
    return readFields(head)
  } catch (error) {
    const quoted = head.replaceAll(PLAIN_LINE, (_line, key: string, value: string) => `${key} ${JSON.stringify(value)}`)
    if (quoted === head) throw error
    return readFields(quoted)
  }
}

/** An unindented line whose value starts with none of the characters that are special in YAML. */
const PLAIN_LINE = /^([A-Za-z][\w-]*:)[ \t]+([^\s"'[\]{}|>&*!%@`#,?:-][^\r\n]*?)[ \t]*$/gm

function readFields(head: string): JsonObject {
  const document = parse(head)
  const problem = document.errors[0] ?? document.warnings[0]
  if (problem !== undefined)
    throw new Error(`the front matter cannot be parsed: ${problem.message.split('\n')[0]!.replace(/:$/, '')}`)
  const fields = toPlain(document.contents, 0)
  if (fields === null) return {}
  if (typeof fields !== 'object' || Array.isArray(fields))
    throw new Error('the front matter is not a list of "key: value"')
  return fields as JsonObject
}

function parse(head: string): Document {
  try {
    return loadYaml().parseDocument(head, {
      version: '1.2',
      schema: 'core',
      strict: true,
      uniqueKeys: true,
      merge: false,
    })
  } catch (error) {
    throw new Error(`the front matter cannot be parsed: ${problemOf(error)}`, { cause: error }) // too deep for the parser
  }
}

function toPlain(node: unknown, depth: number): Json {
  if (depth > MAX_DEPTH) throw new Error(`the front matter is more than ${MAX_DEPTH} levels deep`)
  if (node === null || node === undefined) return null
  const { isAlias, isMap, isScalar, isSeq } = loadYaml()
  if (isAlias(node)) throw new Error(`the front matter uses the alias "*${node.source}"; aliases are not supported`)
  if (isScalar(node)) return toPlainScalar(node.value)
  if (isSeq(node)) return node.items.map((item) => toPlain(item, depth + 1))
  if (!isMap(node)) throw new Error('the front matter contains a value that is not plain YAML')
  const object: { [key: string]: Json } = {}
  for (const { key, value } of node.items) {
    const name = toPlain(key, depth + 1)
    if (typeof name === 'object' || name === '__proto__') throw new Error(`${JSON.stringify(name)} is not a valid key`)
    object[String(name)] = toPlain(value, depth + 1)
  }
  return object
}

function toPlainScalar(value: unknown): Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw new Error(`the front matter contains a ${typeof value} that is not a plain value`)
}
