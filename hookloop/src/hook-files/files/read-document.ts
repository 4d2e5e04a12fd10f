import { findNodeAtLocation, parseTree, printParseErrorCode, type Node, type ParseError } from 'jsonc-parser'
import type { Node as YamlNode } from 'yaml'
import type { Json } from '../../values/json.ts'
import { AgentError } from '../../errors.ts'
import { loadYaml } from '../../values/packages.ts'

export type Path = readonly (string | number)[]

/** The value of a file, and the line of each value in it. */
export type ReadDocument = { readonly value: Json; readonly lineOf: (path: Path) => number }

const MAX_DEPTH = 32

/** Reads JSON with comments, or YAML. Duplicate keys, aliases and tags are errors. */
export function readDocument(text: string, file: string, isYaml = /\.ya?ml$/i.test(file)): ReadDocument {
  const content = text.replace(/^\uFEFF/, '')
  try {
    return isYaml ? readYaml(content, file) : readJsonc(content, file)
  } catch (error) {
    if (error instanceof RangeError) throw invalid(file, undefined, `it is more than ${MAX_DEPTH} levels deep`)
    throw error
  }
}

/** `CloseBracketExpected` as words. */
function problemText({ error }: ParseError): string {
  return printParseErrorCode(error)
    .replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .toLowerCase()
}

function readJsonc(text: string, file: string): ReadDocument {
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { allowTrailingComma: true })
  const lineAt = linesIn(text)
  const [first] = errors
  if (first !== undefined) throw invalid(file, lineAt(first.offset), `it is not valid JSON: ${problemText(first)}`)
  if (root === undefined) throw invalid(file, 1, 'it is empty')
  const toValue = (node: Node, depth: number): Json => {
    if (depth > MAX_DEPTH) throw invalid(file, lineAt(node.offset), `it is more than ${MAX_DEPTH} levels deep`)
    if (node.type === 'array') return (node.children ?? []).map((child) => toValue(child, depth + 1))
    if (node.type !== 'object') return node.value as Json
    const object: { [key: string]: Json } = {}
    for (const { children, offset } of node.children ?? []) {
      const key = children![0]!.value as string
      if (key === '__proto__' || Object.hasOwn(object, key)) {
        throw invalid(
          file,
          lineAt(offset),
          key === '__proto__' ? '"__proto__" is not a valid key' : `the key "${key}" is duplicated`,
        )
      }
      object[key] = toValue(children![1]!, depth + 1)
    }
    return object
  }
  return {
    value: toValue(root, 0),
    lineOf: (path) => lineAt(nearest(path, (part) => findNodeAtLocation(root, [...part]))?.offset ?? 0),
  }
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

function readYaml(text: string, file: string): ReadDocument {
  const { isAlias, isCollection, isMap, isScalar, isSeq, LineCounter, parseDocument } = loadYaml()
  const lineCounter = new LineCounter()
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    strict: true,
    uniqueKeys: false, // this check takes quadratic time
    prettyErrors: false,
    merge: false,
    lineCounter,
  })
  const lineAt = (node: unknown): number => lineCounter.linePos((node as YamlNode | undefined)?.range?.[0] ?? 0).line
  const [first] = [...document.errors, ...document.warnings]
  if (first !== undefined) throw invalid(file, lineCounter.linePos(first.pos[0]).line, first.message.split('\n')[0]!)
  const toValue = (node: unknown, depth: number): Json => {
    if (depth > MAX_DEPTH) throw invalid(file, lineAt(node), `it is more than ${MAX_DEPTH} levels deep`)
    if (node === null || node === undefined) return null
    if (isAlias(node)) throw invalid(file, lineAt(node), 'aliases are not supported')
    if (isScalar(node)) return plainScalar(node.value, file, lineAt(node))
    if (isSeq(node)) return node.items.map((item) => toValue(item, depth + 1))
    if (!isMap(node)) throw invalid(file, lineAt(node), 'it is not a plain value')
    const object: { [key: string]: Json } = {}
    for (const { key, value } of node.items) {
      const name = isScalar(key) ? String(key.value) : ''
      if (name === '' || name === '__proto__') throw invalid(file, lineAt(key), 'it is not a valid key')
      if (Object.hasOwn(object, name)) throw invalid(file, lineAt(key), `the key "${name}" is duplicated`)
      object[name] = toValue(value, depth + 1)
    }
    return object
  }
  return {
    value: toValue(document.contents, 0),
    lineOf: (path) =>
      lineAt(nearest(path, (part) => (isCollection(document.contents) ? document.getIn(part, true) : undefined))),
  }
}

function plainScalar(value: unknown, file: string, line: number): Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw invalid(file, line, `a ${typeof value} is not a plain value`)
}

/** What is at a path, or at the longest part of it that exists. */
function nearest<T>(path: Path, at: (path: Path) => T | undefined): T | undefined {
  for (let length = path.length; length > 0; length--) {
    const found = at(path.slice(0, length))
    if (found !== undefined) return found
  }
  return undefined
}

export function invalid(file: string, line: number | undefined, why: string): AgentError {
  return new AgentError(
    'CONFIG_INVALID',
    `${file}${line === undefined ? '' : `:${line}`}: ${why}${/[.?]$/.test(why) ? '' : '.'}`,
    { value: file },
  )
}
