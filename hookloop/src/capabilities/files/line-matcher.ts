import { messageOf } from '../../errors.ts'
import { loadRe2 } from '../../values/linear-pattern.ts'

/** Finds the lines of a text that match a pattern. */
export type LineMatcher = {
  /** Whether the bytes of a file show that it has no match. */
  readonly cannotMatch: (bytes: Buffer) => boolean
  /** Where the match in a line starts, or undefined without a match. */
  readonly find: (line: string) => number | undefined
}

export type Pattern = { readonly pattern: string; readonly literal: boolean; readonly ignoreCase: boolean }

const MAX_PROGRAM = 2_000
/** The most steps for one line: its length times the size of the program. */
const MAX_WORK = 20_000_000

/** Patterns have RE2 syntax and run in linear time; lookaround and back references are not supported. */
export function lineMatcher({ pattern, literal, ignoreCase }: Pattern): LineMatcher {
  if (literal && !ignoreCase) {
    const bytes = Buffer.from(pattern, 'utf8')
    return {
      cannotMatch: (content) => !content.includes(bytes),
      find: (line) => found(line.indexOf(pattern)),
    }
  }
  const { RE2JS } = loadRe2()
  const compiled = compile(() =>
    RE2JS.compile(literal ? RE2JS.quote(pattern) : pattern, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0),
  )
  if (compiled.programSize() > MAX_PROGRAM) throw new Error('The pattern is too large. Use a simpler one.')
  const longest = Math.floor(MAX_WORK / compiled.programSize())
  return {
    cannotMatch: () => false,
    find: (line) => {
      const searched = line.length > longest ? line.slice(0, longest) : line
      if (!compiled.test(searched)) return undefined
      const matcher = compiled.matcher(searched)
      return matcher.find() ? matcher.start() : 0
    },
  }
}

function compile<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    const why = messageOf(error).replace(/^error parsing regexp: /, '')
    throw new Error(
      `The pattern is not valid: ${why}. Use RE2 syntax, without lookaround and back references, or set literal to search for plain text.`,
      { cause: error },
    )
  }
}

function found(at: number): number | undefined {
  return at === -1 ? undefined : at
}
