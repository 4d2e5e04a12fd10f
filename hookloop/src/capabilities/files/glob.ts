import { loadRe2 } from '../../values/linear-pattern.ts'

/**
 * A test for paths: `*` and `?` match within a name, `**` across names, and `[a-z]`, `[!a]`, `{a,b}` and `\` are as in a shell. It
 * runs without backtracking and expands nothing, so that no pattern of a model can hang the process.
 */
export function toPathTest(pattern: string): (path: string) => boolean {
  if (!/[*?[\]{}\\]/.test(pattern)) return (path) => path === pattern
  const { RE2JS } = loadRe2()
  const compiled = RE2JS.compile(`^(?:${toExpression(pattern)})$`, RE2JS.DOTALL)
  return (path) => compiled.test(path)
}

const ANY_FOLDERS = '(?:.*/)?'

function toExpression(pattern: string): string {
  let [expression, at, depth] = ['', 0, 0]
  while (at < pattern.length) {
    const char = pattern[at++]!
    if (char === '*') {
      let stars = 1
      while (pattern[at] === '*') {
        at++
        stars++
      }
      // Two stars cross names only between slashes.
      const crosses = stars > 1 && (at === stars || pattern[at - stars - 1] === '/')
      if (crosses && pattern[at] === '/') {
        at++
        if (!expression.endsWith(ANY_FOLDERS)) expression += ANY_FOLDERS // `**/**/` is the same as `**/`
      } else expression += crosses && at === pattern.length ? '.*' : '[^/]*'
    } else if (char === '?') expression += '[^/]'
    else if (char === '[') {
      const end = classEnd(pattern, at)
      expression += end === undefined ? '\\[' : toClass(pattern.slice(at, end))
      if (end !== undefined) at = end + 1
    } else if (char === '{') {
      depth++
      expression += '(?:'
    } else if (char === '}' && depth > 0) {
      depth--
      expression += ')'
    } else if (char === ',' && depth > 0) expression += '|'
    else if (char === '\\' && at < pattern.length) expression += literal(pattern[at++]!)
    else expression += literal(char)
  }
  if (depth > 0) throw new Error(`a "{" of "${pattern}" is not closed`)
  return expression
}

/** Where a `[` ends: at the first `]` that is not the first character in it. */
function classEnd(pattern: string, from: number): number | undefined {
  const first = from + (pattern[from] === '!' || pattern[from] === '^' ? 1 : 0)
  const end = pattern.indexOf(']', first + 1)
  return end === -1 || pattern.slice(from, end).includes('/') ? undefined : end
}

function toClass(body: string): string {
  const negated = body.startsWith('!') || body.startsWith('^')
  const members = (negated ? body.slice(1) : body).replaceAll(/[\\\]^[&~]/g, '\\$&')
  return negated ? `[^/${members}]` : `[${members}]`
}

function literal(char: string): string {
  return /[A-Za-z0-9_/\u0080-\uFFFF]/.test(char) ? char : `\\${char}`
}
