import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import { messageOf } from '../../errors.ts'
import { readYaml } from './read-yaml.ts'

/** The front matter fields of a Markdown file, and the text after them. */
type FrontMatter = { readonly fields: JsonObject; readonly body: string }

type FrontMatterOptions = {
  /** Whether `description: Use it when: …` is read as text, as other programs do, instead of being an error. Default false. */
  readonly plainTexts?: boolean
}

const MAX_CHARS = 65_536

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
  const fields = parsed(head)
  if (fields === null) return {}
  if (!isJsonObject(fields)) throw new Error('the front matter is not a list of "key: value"')
  return fields
}

function parsed(head: string): Json {
  try {
    return readYaml(head).value
  } catch (error) {
    throw new Error(`the front matter cannot be parsed: ${messageOf(error).replace(/:$/, '')}`, { cause: error })
  }
}
