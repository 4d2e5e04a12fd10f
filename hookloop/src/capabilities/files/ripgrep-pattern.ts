/**
 * A pattern of RE2 in the syntax of ripgrep, so that it fits at least every line that RE2 would find; or nothing, if
 * that is not certain. It may fit more: what ripgrep finds is looked at again.
 */
export function toRipgrepPattern(pattern: string): string | undefined {
  if (pattern.includes('\uFFFD')) return undefined // stands for bytes that are no text
  try {
    return new Translation(pattern).run()
  } catch (thrown) {
    if (thrown instanceof NotCertain) return undefined
    throw thrown
  }
}

class NotCertain extends Error {}

/** Bytes that are no text are one unreadable character to us, and none to ripgrep. */
const UNREADABLE = '(?-u:[\\x80-\\xFF]){1,3}'

// RE2 knows ASCII digits, words and spaces only, ripgrep those of Unicode.
const classes: { readonly [letter: string]: string } = { d: '0-9', w: '0-9A-Za-z_', s: '\\t\\n\\f\\r ' }

class Translation {
  readonly #pattern: string
  #at = 0

  constructor(pattern: string) {
    this.#pattern = pattern
  }

  run(): string {
    let result = ''
    while (this.#at < this.#pattern.length) result += this.#next()
    return result
  }

  #next(): string {
    const rest = this.#pattern.slice(this.#at)
    const char = String.fromCodePoint(rest.codePointAt(0)!)
    this.#at += char.length
    if (char === '\\') return this.#escape()
    if (char === '[') return this.#class()
    if (char === '.') return `(?:.|${UNREADABLE})`
    if (char === '(') return this.#group()
    if (char === '{') return this.#repeat(rest)
    // An anchor in the middle is rare, and ripgrep has been seen to miss lines there.
    if (char === '^' && this.#at > 1 && !'|('.includes(this.#pattern[this.#at - 2]!)) throw new NotCertain()
    // In a file of CRLF lines ripgrep takes in the CR at a `$`: what comes after it would be somewhere else.
    if (char === '$' && rest.length > 1 && rest[1] !== '|') throw new NotCertain()
    return '*+?|)^$'.includes(char) ? char : literal(char)
  }

  #escape(): string {
    const char = this.#pattern[this.#at++] ?? ''
    if (char === 'b' || char === 'B') return `(?-u:\\${char})`
    const members = classes[char.toLowerCase()]
    if (members !== undefined) return char === char.toLowerCase() ? `[${members}]` : `(?:[^${members}]|${UNREADABLE})`
    return escapedLiteral(char)
  }

  #group(): string {
    const [named] = /^\?(?::|P?<\w+>)/.exec(this.#pattern.slice(this.#at)) ?? ['']
    this.#at += named.length
    if (this.#pattern[this.#at] === '?') throw new NotCertain()
    return '(?:'
  }

  #repeat(rest: string): string {
    const [times] = /^\{\d+(?:,\d*)?\}/.exec(rest) ?? []
    if (times === undefined) return literal('{')
    this.#at += times.length - 1
    return times
  }

  #class(): string {
    const negated = this.#pattern[this.#at] === '^'
    if (negated) this.#at++
    let members = ''
    for (let first = true; ; first = false) {
      const char = String.fromCodePoint(this.#pattern.codePointAt(this.#at) ?? 0)
      if (char === '\0') throw new NotCertain()
      this.#at += char.length
      if (char === ']' && !first) break
      members += this.#member(char)
    }
    return negated ? `(?:[^${members}]|${UNREADABLE})` : `[${members}]`
  }

  #member(char: string): string {
    if (char === '-') {
      if (this.#pattern[this.#at] === '-') throw new NotCertain()
      return '-'
    }
    if (char === '[' && this.#pattern[this.#at] === ':') {
      const [name] = /^:\^?[a-z]+:\]/.exec(this.#pattern.slice(this.#at)) ?? []
      if (name === undefined) throw new NotCertain()
      this.#at += name.length
      return `[${name}`
    }
    if (char !== '\\') return literal(char)
    const escaped = this.#pattern[this.#at++] ?? ''
    const members = classes[escaped.toLowerCase()]
    if (members === undefined) return escapedLiteral(escaped)
    return escaped === escaped.toLowerCase() ? members : `[^${members}]`
  }
}

function escapedLiteral(char: string): string {
  if ('tfv'.includes(char) && char !== '') return char === 'v' ? '\\x0B' : `\\${char}`
  if (!/^[!-/:-@[-`{-~]$/.test(char)) throw new NotCertain()
  return literal(char)
}

/** Whatever is neither a letter nor a digit might mean something. */
function literal(char: string): string {
  if (/^[A-Za-z0-9_ ]$/.test(char) || char.codePointAt(0)! > 127) return char
  return `\\x{${char.codePointAt(0)!.toString(16)}}`
}
