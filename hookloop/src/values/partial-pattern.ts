/** The end of the text, whatever the flags. */
const END = '(?![^])'
const LAST_WORD = `(?<!\\S)\\S+${END}`

/**
 * A global regular expression that finds the matches of another one, and the end of a text that may be the start of a match,
 * or a match that may get longer, once more text follows. It finds too much rather than too little: conditions on the text
 * that follows are dropped. Of an expression that has no such form, the last word may be the start of a match.
 */
export function partialPattern({ source, flags }: RegExp): RegExp {
  const global = `${flags.replaceAll(/[gy]/g, '')}g`
  try {
    const { begun } = new Reader(source, flags).all()
    return new RegExp(`(?:${begun})|(?:${source})`, global)
  } catch {
    return new RegExp(`(?:${LAST_WORD})|(?:${source})`, global)
  }
}

/** `full` matches the term; `inside` matches the end of a text that ends inside it. A condition has no inside. */
type Term = { readonly full: string; readonly inside?: string; readonly begun?: string }
/** `begun` is `partial` without the end of a text in which not even the first character is there, which makes it fast. */
type Alternatives = { readonly full: string; readonly partial: string; readonly begun: string }

const escape = /\\(?:u\{[^}]*\}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[pP]\{[^}]*\}|c[A-Za-z]|[^])/y
const characterClass = /\[(?:\\[^]|[^\\\]])*\]/y
const quantifier = /(?:([*+?])|\{(\d+)(,)?(\d+)?\})\??/y
/** The content of a group that only has lookbehinds. */
const lookbehinds = /^(?:\(\?<[=!](?:[^()]|\([^()]*\))*\)\|?)+\)$/
const groupStart = /\((?:\?(?:<?[=!]|<[^>]*>|[a-z-]*:))?/y

/** Reads an expression, term by term. Throws at what has no partial form. */
class Reader {
  readonly #source: string
  #at = 0

  constructor(source: string, flags: string) {
    if (flags.includes('v')) throw new Error('classes may be nested')
    this.#source = source
  }

  all(): Alternatives {
    const all = this.#alternatives()
    if (!this.#isAtEnd) throw new Error('a group without a start')
    return all
  }

  get #isAtEnd(): boolean {
    return this.#at === this.#source.length
  }

  #alternatives(): Alternatives {
    const all = [this.#sequence()]
    while (this.#take('|')) all.push(this.#sequence())
    const join = (part: keyof Alternatives): string => all.map((each) => each[part]).join('|')
    return { full: join('full'), partial: join('partial'), begun: join('begun') }
  }

  #sequence(): Alternatives {
    const terms: Term[] = []
    while (!this.#isAtEnd && !'|)'.includes(this.#source[this.#at]!)) terms.push(this.#term())
    const [partial, begun] = terms.reduceRight<readonly [string, string]>(
      ([rest, begunRest], { full, inside, begun: own }) => {
        if (inside === undefined) return [`${full}${rest}`, `${full}${begunRest}`]
        const all = `(?:${inside}|${full}${rest})`
        if (own === undefined) return [all, all]
        return [all, own === '' ? `${full}${rest}` : `(?:${own}|${full}${rest})`]
      },
      [END, END],
    )
    return { full: terms.map(({ full }) => full).join(''), partial, begun }
  }

  #term(): Term {
    const group = this.#match(groupStart)
    if (group !== undefined) return this.#group(group[0])
    if (this.#take('^')) return { full: '^' }
    if (this.#take('$')) return { full: '' }
    const escaped = this.#match(escape)?.[0]
    if (escaped === '\\b' || escaped === '\\B') return { full: '' }
    if (escaped !== undefined && /^\\[1-9k]/.test(escaped)) throw new Error('a back reference')
    const atom = escaped ?? this.#match(characterClass)?.[0] ?? this.#character()
    const { text, max } = this.#quantifier()
    if (text === '') return { full: atom, inside: END, begun: '' }
    return { full: `${atom}${text}`, inside: `${atom}{0,${max}}${END}` }
  }

  #group(start: string): Term {
    const from = this.#at
    const { full, partial, begun } = this.#alternatives()
    if (!this.#take(')')) throw new Error('a group without an end')
    if (start === '(?=') return { full: `(?=${full})`, inside: partial }
    const content = this.#source.slice(from, this.#at)
    // What is found in the text now is found in a longer one, unless it depends on the end.
    if (start === '(?!') return { full: /\$|\\b|\(\?/i.test(content) ? '' : `(?!${content}` }
    if (start === '(?<=' || start === '(?<!') return { full: `${start}${content}` }
    const open = start.endsWith(':') ? start : '(?:'
    const { text, max } = this.#quantifier()
    const all = `${open}${full})${text}`
    if (lookbehinds.test(content)) return { full: all }
    if (text === '') return { full: all, inside: `${open}${partial})`, begun: `${open}${begun})` }
    return { full: `${open}${full})${text}`, inside: `${open}${full}){0,${max}}${open}${partial})` }
  }

  /** `max` is the most repetitions, empty if there is no limit. */
  #quantifier(): { readonly text: string; readonly max: string } {
    const found = this.#match(quantifier)
    if (found === undefined) return { text: '', max: '1' }
    const [text, sign, min, hasComma, max] = found
    if (sign !== undefined) return { text, max: sign === '?' ? '1' : '' }
    return { text, max: hasComma === undefined ? min! : (max ?? '') }
  }

  #character(): string {
    const character = String.fromCodePoint(this.#source.codePointAt(this.#at)!)
    this.#at += character.length
    return character
  }

  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false
    this.#at += text.length
    return true
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#source)
    if (found === null) return undefined
    this.#at = pattern.lastIndex
    return found
  }
}
