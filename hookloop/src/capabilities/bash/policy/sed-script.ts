/**
 * Whether a sed script only edits its output. Commands and flags that are not known to be safe count as harmful: `e` and `w`, also as
 * flags of `s`, reading files, and everything that is not understood.
 */
export function isHarmlessSed(script: string): boolean {
  let at = 0
  while (at < script.length) {
    const next = skipCommand(script, at)
    if (next === undefined) return !HARM.test(script.slice(at)) && !script.endsWith('\\')
    at = next
  }
  return true
}

/** Without these letters no version of sed runs commands, or reads or writes other files. */
const HARM = /[ewWrR]/

const ADDRESS = /^(?:\d+(?:~\d+)?|\$|\+\d+|~\d+)/
const COMMENT = /^#[^\n]*/
const TEXT = /^.[ \t]*\\?[^\\\n]*$/
const SINGLE = /^[=dDgGhHnNpPxFz{}]/
const EXIT = /^[lqQL] *\d*(?=[;}\n\s]|$)/
const LABEL = /^[:btT] *\w*(?=[;}\n\s]|$)/
const FLAGS = /^[gpiIMm0-9]*(?=[;}\n\s]|$)/

/** The start of the next command; undefined if this one is not known to be safe. */
function skipCommand(script: string, from: number): number | undefined {
  let at = skipBlanks(script, from)
  if (at >= script.length) return at
  for (let addresses = 0; addresses < 2; addresses += 1) {
    const next = skipAddress(script, at)
    if (next === undefined) return undefined
    if (next === at) break
    at = skipBlanks(script, next)
    if (script[at] !== ',') break
    at = skipBlanks(script, at + 1)
  }
  while (script[at] === '!' || script[at] === ' ') at += 1
  return skipVerb(script, at)
}

function skipBlanks(script: string, from: number): number {
  let at = from
  while (at < script.length && ' \t\n;'.includes(script[at]!)) at += 1
  return at
}

function skipAddress(script: string, at: number): number | undefined {
  if (script[at] === '/') return skipFlag(script, skipDelimited(script, at + 1, '/'))
  if (script[at] === '\\') return skipFlag(script, skipDelimited(script, at + 2, script[at + 1] ?? '\n'))
  return at + (ADDRESS.exec(script.slice(at, at + 40))?.[0].length ?? 0)
}

function skipFlag(script: string, at: number | undefined): number | undefined {
  if (at === undefined) return undefined
  return script[at] === 'I' || script[at] === 'M' ? at + 1 : at
}

function skipVerb(script: string, at: number): number | undefined {
  const rest = script.slice(at)
  if (rest.startsWith('s') || rest.startsWith('y')) return skipSubstitution(script, at)
  if (/^[aic]/.test(rest)) return TEXT.test(rest) ? script.length : undefined
  const known = COMMENT.exec(rest) ?? SINGLE.exec(rest) ?? EXIT.exec(rest) ?? LABEL.exec(rest)
  return known === null ? undefined : at + known[0].length
}

function skipSubstitution(script: string, at: number): number | undefined {
  const delimiter = script[at + 1] ?? '\n'
  if (delimiter === '\n' || delimiter === '\\' || /[\w\s]/.test(delimiter)) return undefined
  const middle = skipDelimited(script, at + 2, delimiter)
  const end = middle === undefined ? undefined : skipDelimited(script, middle, delimiter)
  if (end === undefined) return undefined
  const flags = FLAGS.exec(script.slice(end))
  return flags === null ? undefined : end + flags[0].length
}

/** The index after the closing delimiter. Versions of sed disagree about a delimiter in brackets: then undefined. */
function skipDelimited(script: string, from: number, delimiter: string): number | undefined {
  for (let at = from; at < script.length; at += 1) {
    const character = script[at]!
    if (character === delimiter) return at + 1
    if (character === '\\') at += 1
    if (character !== '[') continue
    const end = endOfBrackets(script, at)
    if (end === undefined) continue
    if (script.slice(at, end).includes(delimiter)) return undefined
    at = end
  }
  return undefined
}

/** The end of a bracket expression, which may contain a first `]` and classes such as `[:alpha:]`. */
function endOfBrackets(script: string, open: number): number | undefined {
  let at = script[open + 1] === '^' ? open + 2 : open + 1
  if (script[at] === ']') at += 1
  for (; at < script.length && script[at] !== '\n'; at += 1) {
    if (script[at] === ']') return at
    const kind = script[at] === '[' ? script[at + 1] : undefined
    if (kind !== ':' && kind !== '.' && kind !== '=') continue
    const close = script.indexOf(`${kind}]`, at + 2)
    if (close === -1) return undefined
    at = close + 1
  }
  return undefined
}
