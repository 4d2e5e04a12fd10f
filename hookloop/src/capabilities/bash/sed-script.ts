/**
 * Whether a sed script does nothing but edit what it prints. Knows the commands and flags that are harmless, and takes
 * everything else as harmful: e and w, the same as flags of s, reading files, and what it does not understand.
 */
export function isHarmlessSed(script: string): boolean {
  let at = 0
  while (at < script.length) {
    const next = skipCommand(script, at)
    if (next === undefined) return false
    at = next
  }
  return true
}

const ADDRESS = /^(?:\d+(?:~\d+)?|\$|\+\d+|~\d+)/
const SINGLE = /^[=dDgGhHnNpPxFz{}]/
const EXIT = /^[lqQL] *\d*(?=[;}\n\s]|$)/
const LABEL = /^[:btT] *\w*(?=[;}\n\s]|$)/
const FLAGS = /^[gpiIMm0-9]*(?=[;}\n\s]|$)/

/** Where the next command begins, or undefined when this one is not known to be harmless. */
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
  if (/^[aic]/.test(rest)) return rest.includes('\n') || rest.includes('\\') ? undefined : script.length
  const known = SINGLE.exec(rest) ?? EXIT.exec(rest) ?? LABEL.exec(rest)
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

/** Past the closing delimiter. Versions of sed disagree about one within brackets: then it is not understood. */
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

/** Where a bracket expression closes: not by a bracket that comes first in it, nor by that of a class such as [:alpha:]. */
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
