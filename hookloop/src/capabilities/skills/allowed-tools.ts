import { toNameTest } from '../../plugin.ts'

/** A tool that a skill allows: by name, in which `*` matches anything, and optionally only for some commands. */
export type AllowedTool = { readonly tool: string; readonly command?: string }

/** Names of tools in other runtimes. */
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

/** Reads `Bash(git diff:*) Read, mcp__docs__*`. Unknown entries allow nothing. */
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

/** Whether the list allows a call. */
export function allowsCall(allowed: readonly AllowedTool[], call: { name: string; args: unknown }): boolean {
  return allowed.some(({ tool, command }) => toNameTest(tool)(call.name) && matchesCommand(command, call.args))
}

export function describeAllowed(allowed: readonly AllowedTool[]): string {
  const words = allowed.map(({ tool, command }) => (command === undefined ? tool : `${tool}(${command})`))
  return words.join(', ') || 'no tools'
}

/** Commas and spaces separate entries, except inside parentheses. */
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
  if (!isShell || command.trim() === '') return undefined // parentheses are supported for shell commands only
  return names.map((tool) => Object.freeze({ tool, command: command.trim() }))
}

/** Characters with which a shell may do more than run the words of a command. */
const SHELL_SYNTAX = /[;&|<>()$`\\{}\n\r!*?[\]~#'"=]/

/**
 * `git diff:*` matches `git diff` and `git diff --stat`; `git diff` only itself. A command with shell syntax matches
 * neither: a skill may only restrict, so anything uncertain is not allowed.
 */
function matchesCommand(allowed: string | undefined, args: unknown): boolean {
  if (allowed === undefined) return true
  const { command } = (args ?? {}) as { readonly command?: unknown }
  if (typeof command !== 'string' || SHELL_SYNTAX.test(command)) return false
  const words = command.trim().split(/\s+/).join(' ')
  const prefix = /^(.*?)(?::\*| \*|\*)$/.exec(allowed)?.[1]?.trim()
  if (prefix === undefined) return words === allowed
  return prefix === '' || words === prefix || words.startsWith(`${prefix} `)
}
