/** The names of the settings in a configuration file of git, as `section.key`, without what stands in quotes between. */
export function settingsIn(configuration: string): readonly string[] {
  const text = configuration.replace(/^\uFEFF/, '').replace(/\r\n/g, '\n')
  const found: string[] = []
  let section = ''
  let at = 0
  const read = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    const match = pattern.exec(text)
    if (match !== null) at = pattern.lastIndex
    return match
  }
  while (at < text.length) {
    if (read(BLANKS) !== null || read(COMMENT) !== null) continue
    const header = read(HEADER)
    const key = header === null ? read(KEY) : null
    if (header === null && key === null) return [...found, UNREADABLE]
    if (header !== null) section = header[1]!.toLowerCase()
    else found.push(`${section.split('.')[0]!}.${key![1]!.toLowerCase()}`)
  }
  return found
}

/** Stands for what git may read and we cannot. */
export const UNREADABLE = 'a setting that cannot be read'

// Several sections may begin in one line, and settings may follow in it. A comment ends with its line, a value goes on behind
// a backslash.
const BLANKS = /\s+/y
const COMMENT = /[#;][^\n]*/y
const HEADER = /\[([A-Za-z0-9.-]+)(?:[^\S\n]+"(?:[^"\\\n]|\\[^\n])*")?\]/y
const KEY = /([A-Za-z][A-Za-z0-9-]*)[^\S\n]*(?:=(?:"(?:[^"\\\n]|\\[^])*"|\\[^]|[^"\\\n#;])*|(?=[\n#;]|$))/y
