import { toNameTest } from '../../hooks/patterns.ts'

/** A tool that a skill allows: by name, with `*` for anything, and perhaps only for commands that begin like this. */
export type AllowedTool = { readonly tool: string; readonly command?: string }

/** What other runtimes call tools that are called otherwise here. */
const otherNames: { readonly [name: string]: readonly string[] } = {
  Bash: ['bash'],
  Read: ['read_file'],
  Write: ['write_file'],
  Edit: ['edit_file'],
  LS: ['list_dir'],
  Glob: ['list_dir', 'search_files'],
  Grep: ['search_files'],
  Task: ['spawn_subagent'],
  TodoWrite: ['todo_write'],
}

/** Reads `Bash(git diff:*) Read, mcp__docs__*`. What is not understood allows nothing. */
export function toAllowedTools(entries: readonly string[]): {
  readonly tools: readonly AllowedTool[]
  readonly unknown: readonly string[]
} {
  const tools: AllowedTool[] = []
  const unknown: string[] = []
  for (const entry of entries.flatMap(splitEntries)) {
    const read = readEntry(entry)
    if (read === undefined) unknown.push(entry.slice(0, 80))
    else tools.push(...read)
  }
  return { tools: Object.freeze(tools), unknown }
}

/** Whether a call is one that the list allows. */
export function allowsCall(allowed: readonly AllowedTool[], call: { name: string; args: unknown }): boolean {
  return allowed.some(({ tool, command }) => toNameTest(tool)(call.name) && fitsCommand(command, call.args))
}

export function wordAllowed(allowed: readonly AllowedTool[]): string {
  const words = allowed.map(({ tool, command }) => (command === undefined ? tool : `${tool}(${command})`))
  return words.join(', ') || 'no tools'
}

/** Commas and blanks separate entries, but not inside of parentheses. */
function splitEntries(text: string): readonly string[] {
  return text.match(/[^\s,()]+(?:\([^()]*\))?|\S/g)?.filter((entry) => entry !== ',') ?? []
}

const ENTRY = /^([A-Za-z0-9_.:*-]{1,128})(?:\(([^()]*)\))?$/

function readEntry(entry: string): readonly AllowedTool[] | undefined {
  const [, name = '', command] = ENTRY.exec(entry) ?? []
  if (name === '') return undefined
  const names = [name, ...(Object.hasOwn(otherNames, name) ? otherNames[name]! : [])]
  if (command === undefined) return names.map((tool) => Object.freeze({ tool }))
  const isShell = names.includes('bash')
  if (!isShell || command.trim() === '') return undefined // what else stands in parentheses nobody here can check
  return names.map((tool) => Object.freeze({ tool, command: command.trim() }))
}

/** Where a shell could do more than the words say. */
const SHELL_SYNTAX = /[;&|<>()$`\\{}\n\r!*?[\]~#'"=]/

/**
 * `git diff:*` fits `git diff` and `git diff --stat`, `git diff` only itself. A command with anything in it that a shell
 * reads as more than words fits neither: this list may only narrow, so what is not certain is not allowed.
 */
function fitsCommand(allowed: string | undefined, args: unknown): boolean {
  if (allowed === undefined) return true
  const { command } = (args ?? {}) as { readonly command?: unknown }
  if (typeof command !== 'string' || SHELL_SYNTAX.test(command)) return false
  const words = command.trim().split(/\s+/).join(' ')
  const beginning = /^(.*?)(?::\*| \*|\*)$/.exec(allowed)?.[1]?.trim()
  if (beginning === undefined) return words === allowed
  return beginning === '' || words === beginning || words.startsWith(`${beginning} `)
}
