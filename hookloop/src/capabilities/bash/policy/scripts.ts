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
  String.raw`(?:\\[^]|\[(?:\^|(?!\^))(?:\]|(?!\]))(?:\[:\w+:\]|(?!${delimiter})[^\][\n])*\]|(?!${delimiter})[^\\[\n])*`

const ADDRESS = String.raw`(?:\d+(?:~\d+)?|\$|[+~]\d+|/${pattern('/')}/[IM]*)`
const END = String.raw`(?=[;}\n\s]|$)`
const SUBSTITUTION = String.raw`s([/|,#@!%~+])${pattern(String.raw`\1`)}\1(?:\\[^]|(?!\1)[^\\])*\1[gpiIMm0-9]*${END}`
/** The last one is text to insert, without a continuation. */
const VERB = String.raw`${SUBSTITUTION}|#[^\n]*|[=dDgGhHnNpPxFz{}]|[lqQL] *\d*${END}|[:btT] *\w*${END}|[aic](?:[ \t]*\\)?[^\\\n]*$`
const COMMAND = new RegExp(String.raw`[\s;]*(?:(?:${ADDRESS}\s*(?:,\s*${ADDRESS}\s*)?)?(?:![! ]*)?(?:${VERB})|$)`, 'y')

/** Whether an awk program only prints: it calls no command and no function by a name in a text, and reads and writes no other files. */
export function isHarmlessAwk(program: string): boolean {
  const isClear = !/[/#]/.test(program) // no pattern or comment may contain a quote
  const code = (isClear ? program.replace(/"(?:[^"\\]|\\[^])*"?/g, '""') : program).replace(/\|\||>=/g, ' ')
  // Only a print statement writes or pipes: anywhere else `>` compares, and `|` is part of a pattern.
  const statements = isClear ? code.split(/[;}]/) : [code]
  return (
    !/getline|system|ENVIRON|SYMTAB|@|\\\n/.test(program) &&
    !statements.some((each) => /[|>]/.test(each.split(/print([^]*)/)[1] ?? ''))
  )
}
