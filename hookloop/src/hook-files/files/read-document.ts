import { findNodeAtLocation, parseTree, printParseErrorCode, type Node, type ParseError } from 'jsonc-parser'
import type { Json } from '../../values/json.ts'
import { AgentError } from '../../errors.ts'
import { InvalidText, MAX_DEPTH, nearest, readYaml, tooDeep, type ReadText } from '../../system/files/read-yaml.ts'

/** Reads JSON with comments, or YAML. Duplicate keys, aliases and tags are errors. */
export function readDocument(text: string, file: string): ReadText {
  const content = text.replace(/^\uFEFF/, '')
  try {
    return /\.ya?ml$/i.test(file) ? readYaml(content) : readJsonc(content)
  } catch (error) {
    if (error instanceof InvalidText) throw invalid(file, error.line, error.message)
    throw error instanceof RangeError ? invalid(file, undefined, tooDeep) : error
  }
}

function readJsonc(text: string): ReadText {
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { allowTrailingComma: true })
  const lineAt = linesIn(text)
  const [first] = errors
  if (first !== undefined) throw new InvalidText(`it is not valid JSON: ${problemText(first)}`, lineAt(first.offset))
  if (root === undefined) throw new InvalidText('it is empty', 1)
  const toValue = (node: Node, depth: number): Json => {
    if (depth > MAX_DEPTH) throw new InvalidText(tooDeep, lineAt(node.offset))
    if (node.type === 'array') return (node.children ?? []).map((child) => toValue(child, depth + 1))
    if (node.type !== 'object') return node.value as Json
    const object: { [key: string]: Json } = {}
    for (const { children, offset } of node.children ?? []) {
      const key = children![0]!.value as string
      if (key === '__proto__') throw new InvalidText('"__proto__" is not a valid key', lineAt(offset))
      if (Object.hasOwn(object, key)) throw new InvalidText(`the key "${key}" is duplicated`, lineAt(offset))
      object[key] = toValue(children![1]!, depth + 1)
    }
    return object
  }
  return {
    value: toValue(root, 0),
    lineOf: (path) => lineAt(nearest(path, (part) => findNodeAtLocation(root, [...part]))?.offset ?? 0),
  }
}

/** `CloseBracketExpected` as words. */
function problemText({ error }: ParseError): string {
  return printParseErrorCode(error)
    .replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .toLowerCase()
}

/** Line numbers by offset, by bisection: a file may have thousands of hooks. */
function linesIn(text: string): (offset: number) => number {
  const ends = [...text.matchAll(/\n/g)].map(({ index }) => index)
  return (offset) => {
    let [low, high] = [0, ends.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (ends[middle]! < offset) low = middle + 1
      else high = middle
    }
    return low + 1
  }
}

export function invalid(file: string, line: number | undefined, why: string): AgentError {
  return new AgentError(
    'CONFIG_INVALID',
    `${file}${line === undefined ? '' : `:${line}`}: ${why}${/[.?]$/.test(why) ? '' : '.'}`,
    { value: file },
  )
}
