/**
 * Whether a sed script only edits its output. Commands and flags that are not known to be safe count as harmful: `e` and `w`, also as
 * flags of `s`, reading files, and everything that is not understood.
 */
export function isHarmlessSed(script: string): boolean {
  COMMAND.lastIndex = 0
  let at = 0
  while (at < script.length && COMMAND.test(script)) at = COMMAND.lastIndex
  // Without these letters no version of sed runs commands, or reads or writes other files.
  return at >= script.length || (!/[ewWrR]/.test(script.slice(at)) && !script.endsWith('\\'))
}

/** Text up to a delimiter. Versions of sed disagree about a delimiter in brackets, so there must be none. */
const pattern = (delimiter: string): string =>
  String.raw`(?:\\[^]|\[\^?(?:\]|(?!\]))(?:\[:\w+:\]|(?!${delimiter})[^\][\n])*\]|(?!${delimiter})[^\\[\n])*`

const ADDRESS = String.raw`(?:\d+(?:~\d+)?|\$|[+~]\d+|/${pattern('/')}/[IM]*)`
const END = String.raw`(?=[;}\n\s]|$)`
const SUBSTITUTION = String.raw`[sy]([^\w\s\\[])${pattern(String.raw`\1`)}\1(?:\\[^]|(?!\1)[^\\])*\1[gpiIMm0-9]*${END}`
/** The last one is text to insert, without a continuation. */
const VERB = String.raw`${SUBSTITUTION}|#[^\n]*|[=dDgGhHnNpPxFz{}]|[lqQL] *\d*${END}|[:btT] *\w*${END}|[aic][ \t]*\\?[^\\\n]*$`
const COMMAND = new RegExp(String.raw`[\s;]*(?:(?:${ADDRESS}\s*(?:,\s*${ADDRESS}\s*)?)?[! ]*(?:${VERB})|$)`, 'y')

/** Whether an awk program only prints: it calls no command, and reads and writes no other files. */
export function isHarmlessAwk(program: string): boolean {
  const bare = withoutTexts(program)
  const code = (bare ?? program).replace(/\|\||>=/g, ' ')
  const own = [...code.matchAll(/\bfunc(?:tion)?\s+([A-Za-z_]\w*)\s*\(/g)].map(([, name]) => name!)
  const calls = [...code.matchAll(/([A-Za-z_]\w*)\s*\(/g)].map(([, name]) => name!)
  // Only a print statement writes or pipes: anywhere else `>` compares, and `|` is part of a pattern.
  const writes = bare === undefined ? /print[^]*[|>]/ : /print[^;}]*[|>]/
  return (
    !/getline|system|ENVIRON|@|\\\n/.test(program) &&
    !writes.test(code) &&
    calls.every((name) => functions.has(name) || own.includes(name))
  )
}

/** A slash after these starts a pattern. */
const KEYWORD = /\b(?:printf?|return|exit|case|delete|in|else|do)$/

const TOKEN =
  /"(?:[^"\\\n]|\\[^])*"|\/(?:[^/\\\n[]|\\.|\[(?!\^?\])\^?(?:\[:\w+:\]|[^\][/\n\\]|\\.)+\])+\/|#[^\n]*|\s+|[A-Za-z_]\w*|[^]/gy

/**
 * The program without its texts, patterns and comments; undefined if a slash may be the start of a pattern or a division. Output to
 * the standard streams is no file.
 */
function withoutTexts(program: string): string | undefined {
  let code = ''
  for (const [token] of program.matchAll(TOKEN)) {
    const before = code.trimEnd()
    if (token === '"') return undefined
    else if (token.startsWith('"')) code += /^"\/dev\/std(?:err|out)"$/.test(token) ? '"STREAM"' : '""'
    else if (token.startsWith('/')) {
      const isPattern = /(?:^|[(,{};!~&|=\n]|\bprint|\breturn)$/.test(before) || /\n\s*$/.test(code)
      const isDivision = /[\w\]"]$/.test(before) && !/\n\s*$/.test(code) && !KEYWORD.test(before)
      if (isPattern && token.length > 1) code += '1'
      else if (isDivision && token === '/') code += token
      else return undefined
    } else if (!token.startsWith('#')) code += token
  }
  return code.replace(/>{1,2}\s*"STREAM"\s*(?=[;}\n]|$)/g, '')
}

const functions: ReadonlySet<string> = new Set(
  `if while for in print printf length substr index split sub gsub match sprintf tolower toupper int sqrt exp log sin cos atan2 rand srand
  gensub strftime systime mktime strtonum asort asorti patsplit and or xor lshift rshift compl typeof isarray close fflush return exit
  delete else do switch`.split(/\s+/),
)
