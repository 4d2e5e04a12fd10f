import { stripTypeScriptTypes } from 'node:module'
import { parse, type AnyNode } from 'acorn'

/** One change of a source file that should make a test fail. */
export type Mutant = {
  readonly start: number
  readonly end: number
  /** What the text between them becomes. */
  readonly text: string
  readonly line: number
  /** The text of that line. */
  readonly code: string
  /** The change as text, such as `a === b → a !== b`. */
  readonly change: string
}

/** Every single change of a TypeScript source. Types are replaced by spaces, so that positions stay the same. */
export function mutantsOf(source: string): readonly Mutant[] {
  const code = stripTypeScriptTypes(source)
  const tree = parse(code, { ecmaVersion: 'latest', sourceType: 'module' })
  const found: Mutant[] = []
  visit(tree, [], (node, parents) => {
    for (const { start, end, text } of changesOf(node, parents, code)) {
      const line = code.slice(0, start).split('\n').length
      const change = `${shown(source.slice(start, end))} → ${shown(text) || '(removed)'}`
      found.push({ start, end, text, line, code: source.split('\n')[line - 1]!.trim(), change })
    }
  })
  return found
}

type Change = { readonly start: number; readonly end: number; readonly text: string }

const operators: { readonly [operator: string]: string } = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '+': '-',
  '-': '+',
  '&&': '||',
  '||': '&&',
}

/** A map, because `toString` is a property of every object. */
const methods: ReadonlyMap<string, string> = new Map([
  ['some', 'every'],
  ['every', 'some'],
  ['min', 'max'],
  ['max', 'min'],
])

function changesOf(node: AnyNode, parents: readonly AnyNode[], code: string): readonly Change[] {
  const textOf = ({ start, end }: { start: number; end: number }): string => code.slice(start, end)
  const replaced = (text: string): readonly Change[] => [{ start: node.start, end: node.end, text }]
  switch (node.type) {
    case 'BinaryExpression':
    case 'LogicalExpression': {
      const other = operators[node.operator]
      if (other === undefined || isText(node)) return []
      const at = code.indexOf(node.operator, node.left.end)
      return replaced(code.slice(node.start, at) + other + code.slice(at + node.operator.length, node.end))
    }
    case 'UnaryExpression':
      return node.operator === '!' ? replaced(textOf(node.argument)) : []
    case 'IfStatement':
    case 'ConditionalExpression': {
      const { start, end } = node.test
      return isNegatable(node.test) ? [{ start, end, text: `!(${textOf(node.test)})` }] : []
    }
    case 'ReturnStatement': {
      const isEarly = parents.at(-1)?.type === 'IfStatement' || parents.at(-2)?.type === 'IfStatement'
      return isEarly ? replaced(';') : []
    }
    case 'ExpressionStatement': {
      const { expression } = node
      const call = expression.type === 'AwaitExpression' ? expression.argument : expression
      const isRemovable = call.type === 'CallExpression' || call.type === 'AssignmentExpression'
      return isRemovable ? replaced('void 0') : []
    }
    case 'AwaitExpression':
      return replaced(`(${textOf(node.argument)})`)
    case 'MemberExpression': {
      const { property, computed } = node
      const other = computed || property.type !== 'Identifier' ? undefined : methods.get(property.name)
      return other === undefined ? [] : [{ start: property.start, end: property.end, text: other }]
    }
    case 'Literal':
      return literalChanges(node, parents, replaced)
    default:
      return []
  }
}

function literalChanges(
  { value, start }: AnyNode & { type: 'Literal' },
  parents: readonly AnyNode[],
  replaced: (text: string) => readonly Change[],
): readonly Change[] {
  if (typeof value === 'boolean') return replaced(String(!value))
  if (typeof value === 'number') return replaced(String(isPriority(parents) && value !== 0 ? 0 : value + 1))
  const parent = parents.at(-1)!
  const isName = typeof value === 'string' && /^[\w.-]+$/.test(value)
  const isFixed = /^(Import|Export)/.test(parent.type) || isKey(parent, start)
  if (!isName || isFixed || parent.type === 'BinaryExpression') return [] // a comparison is changed as a whole
  return replaced(`'${value}-changed'`)
}

/** A priority is compared with others, which are far from it. */
function isPriority(parents: readonly AnyNode[]): boolean {
  const property = parents.findLast(({ type }) => type !== 'UnaryExpression')
  return property?.type === 'Property' && property.key.type === 'Identifier' && property.key.name === 'priority'
}

function isKey(parent: AnyNode, start: number): boolean {
  return parent.type === 'Property' && parent.key.start === start
}

/** A comparison or a `!` is changed by itself, which is the same as negating it. */
function isNegatable(test: AnyNode): boolean {
  if (test.type === 'UnaryExpression') return test.operator !== '!'
  return test.type !== 'BinaryExpression' || operators[test.operator] === undefined || /[<>]/.test(test.operator)
}

/** Text that is put together: messages are not decisions. */
function isText(node: AnyNode): boolean {
  if (node.type === 'TemplateLiteral') return true
  if (node.type === 'Literal') return typeof node.value === 'string'
  return node.type === 'BinaryExpression' && node.operator === '+' && (isText(node.left) || isText(node.right))
}

function visit(
  node: AnyNode,
  parents: readonly AnyNode[],
  act: (node: AnyNode, parents: readonly AnyNode[]) => void,
): void {
  act(node, parents)
  for (const [key, value] of Object.entries(node)) {
    if (key === 'type' || typeof value !== 'object' || value === null) continue
    for (const child of Array.isArray(value) ? (value as unknown[]) : [value])
      if (isNode(child)) visit(child, [...parents, node], act)
  }
}

function isNode(value: unknown): value is AnyNode {
  return typeof (value as { type?: unknown } | null)?.type === 'string'
}

function shown(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > 80 ? `${line.slice(0, 77)}…` : line
}
