import { forEachChild, type SyntaxNode } from 'unbash'
import { isNumber, isPlainOutput, literalWord } from './literal-word.ts'

/** What is known of every value that a text gives a variable. */
export type Fact = {
  /** Whether it is a number, so that arithmetic does not evaluate other names or subscripts. */
  readonly isNumber: boolean
  /** Whether it is a path below the working directory. */
  readonly isBelow: boolean
  /** Whether it is a relative path, or a pattern of them, which is no address of a network connection. */
  readonly isRelative: boolean
  /** Whether it is one plain word that is no option, also without quotes. */
  readonly isPlain: boolean
}

const unknown: Fact = { isNumber: false, isBelow: false, isRelative: false, isPlain: false }

/** The facts about all variables of a text. A name that is not in it is not set by the text. */
export function factsIn(script: SyntaxNode, isBelow: (text: string) => boolean): ReadonlyMap<string, Fact> {
  const facts = new Map<string, Fact>()
  const add = (name: string, fact: Fact): void => {
    const before = facts.get(name) ?? fact
    facts.set(name, {
      isNumber: before.isNumber && fact.isNumber,
      isBelow: before.isBelow && fact.isBelow,
      isRelative: before.isRelative && fact.isRelative,
      isPlain: before.isPlain && fact.isPlain,
    })
  }
  const factOf = (text: string): Fact => ({
    isNumber: isNumber(text),
    isBelow: isBelow(text),
    isRelative: /^[\w.*?-][\w./*?@-]*$/.test(text),
    isPlain: /^\w[\w./:@%+-]*$/.test(text) || isPlainOutput(text),
  })
  const visit = (node: SyntaxNode): void => {
    if (node.type === 'Assignment')
      add(node.name, node.value.type === 'Word' && node.append !== true ? factOf(node.value.text) : unknown)
    else if (node.type === 'For')
      for (const { text } of node.wordlist ?? [])
        add(node.name.text, RANGE.test(text) ? { ...NUMBER, isPlain: true } : factOf(text))
    else if (node.type === 'ArithmeticWord' && /^[A-Za-z_]\w*$/.test(node.value)) add(node.value, NUMBER)
    else if (node.type === 'Command') {
      const words = [...(node.name === undefined ? [] : [node.name]), ...node.args].flatMap(
        ({ text }) => expandBraces(text) ?? [literalWord(text) ?? text],
      )
      // `command read x` sets it too.
      if (words.some((word) => SETS_VARIABLES.test(word))) for (const word of words) add(word, unknown)
    }
    forEachChild(node, visit)
  }
  visit(script)
  return facts
}

const SETS_VARIABLES = /^(?:read|printf|getopts|mapfile|readarray|unset)$/

const NUMBER: Fact = { ...unknown, isNumber: true }

/** `{1..5}` */
const RANGE = /^\{\d+\.\.\d+\}$/

/**
 * The words that a word with lists or ranges in braces becomes. Undefined if it has none, or if it has quotes, other expansions, nested
 * braces or too many words.
 */
export function expandBraces(text: string): readonly string[] | undefined {
  const match = /^([^{}'"\\$`]*)\{([^{}'"\\$`]*)\}([^'"\\$`]*)$/.exec(text)
  if (match === null) return undefined
  const [, before = '', list = '', after = ''] = match
  const items = list.includes(',') ? list.split(',') : rangeOf(list)
  const rest = /[{}]/.test(after) ? expandBraces(after) : [after]
  if (items === undefined || rest === undefined || items.length * rest.length > MAX_WORDS) return undefined
  return items.flatMap((item) => rest.map((end) => before + item + end)).filter((word) => word !== '')
}

const MAX_WORDS = 100

function rangeOf(text: string): readonly string[] | undefined {
  const [, first, last, letter, end] = /^(?:(0|[1-9]\d{0,5})\.\.(0|[1-9]\d{0,5})|([a-z])\.\.([a-z]))$/.exec(text) ?? []
  const [from, to] = [Number(first ?? letter?.charCodeAt(0)), Number(last ?? end?.charCodeAt(0))]
  const length = Math.abs(to - from) + 1
  if (Number.isNaN(length) || length > MAX_WORDS) return undefined
  const numbers = Array.from({ length }, (_, i) => (to > from ? from + i : from - i))
  return numbers.map((number) => (letter === undefined ? String(number) : String.fromCharCode(number)))
}
