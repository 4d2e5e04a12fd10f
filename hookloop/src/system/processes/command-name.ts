const interpreters =
  /^(?:(?:ba|da|z|k|fi)?sh|node|bun|deno|tsx|ts-node|npx|python[\d.]*|uv|ruby|perl|php|pwsh|env|exec|nice|timeout)$/

/**
 * A short name for a command: the program, or the script that it runs, without folders, options and arguments, which may
 * contain secrets.
 */
export function commandName(command: string | readonly string[]): string {
  const words = typeof command === 'string' ? wordsIn(command) : [command[0]!, ...command.slice(1).flatMap(wordsIn)]
  let found = ''
  for (const word of words) {
    const name = plainName(word)
    if (/^[A-Za-z_]\w*=/.test(word) || name === undefined) continue
    found = name
    if (!interpreters.test(name)) break
  }
  return found === '' ? 'command' : found
}

/** Lines that shells and interpreters print about what they run. */
const diagnostic =
  /^(?:(?:\S*\/)?(?:(?:ba|da|z|k)?sh|python[\d.]*|node|deno|bun|ruby|php|pwsh): |Can't open perl script )/

/**
 * What a command printed to standard error, without its command line and the folder of its script: a shell quotes a line that
 * it cannot parse, an interpreter the path of a script that does not exist, and a script its own path. What the command says
 * itself does not change.
 */
export function withoutCommand(text: string, command: string | readonly string[]): string {
  const name = commandName(command)
  const lines = (typeof command === 'string' ? command : command.join('\n')).split('\n').map((line) => line.trim())
  const quoted = lines.filter((line) => /\s/.test(line)).toSorted((a, b) => b.length - a.length)
  const script = name.replaceAll(/[.+]/g, '\\$&')
  const anyPath = new RegExp(`(?<![^\\s"'\`])[^\\s"'\`]*/${script}(?![\\w.-])`, 'g')
  const ownPath = new RegExp(`^\\S*/${script}(?=: )`)
  const shorten = (line: string): string => {
    if (!diagnostic.test(line)) return line.replace(ownPath, name)
    return quoted.reduce((rest, each) => rest.replaceAll(each, name), line).replaceAll(anyPath, name)
  }
  return text.split('\n').map(shorten).join('\n')
}

function wordsIn(line: string): readonly string[] {
  return line.trim().split(/[\s;&|()<>]+/)
}

/** The last part of a path. Undefined for options, numbers and everything that is not a path. */
function plainName(word: string): string | undefined {
  const path = word.replaceAll(/["']/g, '').replace(/^\$(?:\{\w+\}|\w+)(?=\/)/, '')
  if (!/^[\w./~@+-]+$/.test(path) || /^-|^[\d.]+[smhd]?$/.test(path)) return undefined
  const name = path.slice(path.lastIndexOf('/') + 1)
  return name === '' || name.length > 60 ? undefined : name
}
