import { isAbsolute, resolve } from 'node:path'
import { isJsonObject, type Json, type JsonObject } from '../../../values/json.ts'

type Renamed = {
  /** The name of the tool in Claude Code. */
  readonly name: string
  /** Arguments with another name in Claude Code. */
  readonly args?: { readonly [ours: string]: string }
  /** Arguments that are absolute paths in Claude Code. */
  readonly paths?: readonly string[]
}

/** Tools with another name in Claude Code. */
const renamed: { readonly [ours: string]: Renamed } = {
  bash: { name: 'Bash', args: { timeout_ms: 'timeout' } },
  read_file: { name: 'Read', args: { path: 'file_path' }, paths: ['file_path'] },
  write_file: { name: 'Write', args: { path: 'file_path' }, paths: ['file_path'] },
  edit_file: { name: 'Edit', args: { path: 'file_path' }, paths: ['file_path'] },
  list_dir: { name: 'LS', paths: ['path'] },
  search_files: { name: 'Grep', paths: ['path'] },
  spawn_subagent: { name: 'Agent', args: { subagent: 'subagent_type' } },
  todo_write: { name: 'TodoWrite' },
  load_skill: { name: 'Skill', args: { skill_name: 'skill' } },
}

/** Current and former names of one tool. */
const aliases: readonly (readonly string[])[] = [['Agent', 'Task']]

export type ClaudeCall = {
  readonly name: string
  /** All names that a matcher may use. */
  readonly names: readonly string[]
  readonly input: JsonObject
}

/** A call with the names of Claude Code. */
export function toClaudeCall(name: string, args: Json, cwd: string): ClaudeCall {
  const rule = ruleFor(name)
  const input = isJsonObject(args) ? args : {}
  if (rule === undefined) return { name, names: namesOf(name), input }
  return { name: rule.name, names: namesOf(rule.name), input: renameKeys(input, rule.args ?? {}, absolute(rule, cwd)) }
}

/** All names of a tool, current and former, in Claude Code and Hookloop. */
export function namesOf(name: string): readonly string[] {
  const theirs = ruleFor(name)?.name ?? name
  const former = aliases.find((each) => each.includes(theirs)) ?? [theirs]
  const ours = Object.keys(renamed).filter((each) => former.includes(renamed[each]!.name))
  return [...new Set([theirs, ...former, ...ours, name])]
}

/** The name in Hookloop of a tool of a payload. */
export function ownName(theirs: string): string {
  return namesOf(theirs).find((name) => Object.hasOwn(renamed, name)) ?? theirs
}

/** Arguments from a script with the names of Hookloop. */
export function fromClaudeInput(name: string, input: JsonObject): JsonObject {
  const back = Object.fromEntries(Object.entries(ruleFor(name)?.args ?? {}).map(([ours, theirs]) => [theirs, ours]))
  return renameKeys(input, back)
}

function ruleFor(name: string): Renamed | undefined {
  return Object.hasOwn(renamed, name) ? renamed[name] : undefined
}

function absolute({ paths = [] }: Renamed, cwd: string): (key: string, value: Json) => Json {
  return (key, value) =>
    paths.includes(key) && typeof value === 'string' && !isAbsolute(value) ? resolve(cwd, value) : value
}

function renameKeys(
  input: JsonObject,
  names: { readonly [from: string]: string },
  change: (key: string, value: Json) => Json = (_key, value) => value,
): JsonObject {
  return Object.fromEntries(
    Object.entries(input).map(([key, value]) => {
      const to = Object.hasOwn(names, key) ? names[key]! : key
      return [to, change(to, value)]
    }),
  )
}
