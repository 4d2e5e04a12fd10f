const interpreters =
  /^(?:(?:ba|da|z|k|fi)?sh|node|bun|deno|tsx|ts-node|npx|python[\d.]*|uv|ruby|perl|php|pwsh|env|exec|nice|timeout)$/

/**
 * A short name for a command: the program, or the script that it runs, without folders, options and arguments, which may
 * contain secrets.
 */
export function commandName(command: string | readonly string[]): string {
  const words = typeof command === 'string' ? command.trim().split(/[\s;&|()<>]+/) : command
  let found = ''
  for (const word of words) {
    const name = plainName(word)
    if (/^[A-Za-z_]\w*=/.test(word) || name === undefined) continue
    found = name
    if (!interpreters.test(name)) break
  }
  return found === '' ? 'command' : found
}

/** The last part of a path. Undefined for options, numbers and everything that is not a path. */
function plainName(word: string): string | undefined {
  const path = word.replaceAll(/["']/g, '').replace(/^\$(?:\{\w+\}|\w+)(?=\/)/, '')
  if (!/^[\w./~@+-]+$/.test(path) || /^-|^[\d.]+[smhd]?$/.test(path)) return undefined
  const name = path.slice(path.lastIndexOf('/') + 1)
  return name === '' || name.length > 60 ? undefined : name
}
