import { http, type HttpOptions } from '../actions/http.ts'
import { shell, type ShellOptions } from '../actions/shell.ts'
import { isJsonObject, type Json, type JsonObject } from '../data/json.ts'
import { messageOf, type AgentError } from '../errors.ts'
import type { Action } from '../hooks/action.ts'
import { claudeAction } from './claude/claude-action.ts'
import { guard, hook, observe, type Hook } from '../hooks/hook.ts'
import { all, any, hasMetadata, not, stepType, type Matcher } from '../hooks/matchers.ts'
import { isAround, isTrigger, triggerNames } from '../hooks/triggers.ts'
import { invalid, readDocument, type Path } from './read-document.ts'

/** Where a hook of a file comes from. */
export type FileSource = { readonly kind: 'user' | 'project' | 'plugin' | 'skill' | 'agent'; readonly file: string }

export type FileHook = {
  readonly hook: Hook
  readonly source: FileSource
  readonly entry: JsonObject
  readonly line: number
}

/** How hooks of a file are made. */
export type HookMaking = {
  /** The folder that commands run in. */
  readonly cwd: string
  /** Made from a name, for prompts and subagents, which need more than a file can bring. */
  readonly actions?: { readonly [kind: string]: (options: JsonObject) => Action }
}

/** What an entry may say. The published schema has the same. */
export const entryFields = [
  'name',
  'on',
  'mode',
  'tool',
  'when',
  'priority',
  'timeoutMs',
  'onFailure',
  'stream',
] as const
export const modes = ['guard', 'hook', 'observe'] as const

/**
 * Reads a file of hooks. Nothing in it is skipped: a guard that is left out because of a misspelt word would be one that
 * silently does not apply, so the file is refused, with the line.
 */
export function readHookFile(text: string, source: FileSource, making: HookMaking): readonly FileHook[] {
  const { file } = source
  const { value, lineOf } = readDocument(text, file)
  const refuse = (path: Path, why: string): AgentError => invalid(file, lineOf(path), why)
  if (!isJsonObject(value)) throw refuse([], 'it must be an object with "hooks"')
  const stray = Object.keys(value).find((key) => !['$schema', 'hooks', 'description'].includes(key))
  if (stray !== undefined) throw refuse([stray], `"${stray}" is not known; hooks stand under "hooks"`)
  const { hooks } = value
  if (!Array.isArray(hooks)) throw refuse(['hooks'], '"hooks" must be a list')
  return hooks.map((entry: Json, i) => {
    try {
      return {
        hook: toHook(entry, { ...making, file }),
        source,
        entry: entry as JsonObject,
        line: lineOf(['hooks', i]),
      }
    } catch (error) {
      const at = error instanceof Misspelt ? ['hooks', i, ...error.path] : ['hooks', i]
      throw refuse(at, messageOf(error).replace(/\.$/, ''))
    }
  })
}

class Misspelt extends Error {
  readonly path: Path

  constructor(path: Path, why: string) {
    super(why)
    this.path = path
  }
}

function toHook(entry: Json, making: HookMaking & { readonly file: string }): Hook {
  if (!isJsonObject(entry)) throw new Misspelt([], 'a hook must be an object')
  const kinds = ['shell', 'http', 'claude', ...Object.keys(making.actions ?? {})]
  const known: readonly string[] = [...entryFields, ...kinds]
  const stray = Object.keys(entry).find((key) => !known.includes(key))
  if (stray !== undefined) throw new Misspelt([stray], `there is no "${stray}". Known: ${known.join(', ')}`)
  const given = kinds.filter((kind) => entry[kind] !== undefined)
  if (given.length !== 1) throw new Misspelt([], `a hook needs exactly one of ${kinds.join(', ')}`)
  const [kind] = given
  const { mode } = entry
  if (!(modes as readonly Json[]).includes(mode ?? ''))
    throw new Misspelt(['mode'], `"mode" must be one of ${modes.join(', ')}`)
  const action = toAction(kind!, entry[kind!]!, making)
  const on = triggersOf(entry['on'])
  const make = { guard, hook, observe }[mode as 'guard'] as unknown as (
    on: string[],
    action: Action,
    options: object,
  ) => Hook
  return make(on, action, optionsOf(entry))
}

function triggersOf(on: Json | undefined): string[] {
  const names = typeof on === 'string' ? [on] : Array.isArray(on) ? on : []
  if (names.length === 0) throw new Misspelt(['on'], `"on" must be a trigger, or a list of them: ${known.join(', ')}`)
  for (const name of names) {
    if (!isTrigger(name) || isAround(name)) {
      const near = known.find((each) => each.toLowerCase() === String(name).toLowerCase())
      throw new Misspelt(
        ['on'],
        `there is no trigger ${JSON.stringify(name)}${near === undefined ? '' : `; did you mean "${near}"?`}`,
      )
    }
  }
  return names as string[]
}

const known = triggerNames.filter((name) => !isAround(name))

function toAction(
  kind: string,
  given: Json,
  { cwd, file, actions = {} }: HookMaking & { readonly file: string },
): Action {
  const options = typeof given === 'string' ? { [kind === 'http' ? 'url' : 'command']: given } : given
  if (!isJsonObject(options)) throw new Misspelt([kind], `"${kind}" must be an object`)
  if (kind === 'shell') return shell({ cwd, ...(options as ShellOptions) })
  if (kind === 'http') return http(options as HttpOptions)
  if (kind === 'claude') return claudeAction(options, { cwd, source: { kind: 'given', file } })
  return actions[kind]!(options)
}

function optionsOf(entry: JsonObject): object {
  const { name, tool, when, priority, timeoutMs, onFailure, stream } = entry
  for (const [key, type] of optionTypes) {
    if (entry[key] !== undefined && typeof entry[key] !== type) throw new Misspelt([key], `"${key}" must be a ${type}`)
  }
  return {
    ...(name !== undefined && { name }),
    ...(tool !== undefined && { tool: toolPattern(tool as string) }),
    ...(when !== undefined && { when: toMatcher(when, ['when']) }),
    ...(priority !== undefined && { priority }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(onFailure !== undefined && { onFailure }),
    ...(stream !== undefined && { stream }),
  }
}

const optionTypes = [
  ['name', 'string'],
  ['tool', 'string'],
  ['priority', 'number'],
  ['timeoutMs', 'number'],
  ['onFailure', 'string'],
  ['stream', 'string'],
] as const

/** A name, one with `*` in it, or a regular expression between slashes. */
function toolPattern(text: string): string | RegExp {
  const expression = /^\/(.*)\/([a-z]*)$/s.exec(text)
  return expression === null ? text : new RegExp(expression[1]!, expression[2])
}

/** `{ "metadata": { "role": "guest" } }`, `{ "stepType": "toolUse" }`, and `all`, `any`, `not` over such. */
function toMatcher(given: Json, path: Path): Matcher {
  const entries = isJsonObject(given) ? Object.entries(given) : []
  if (entries.length === 0) throw new Misspelt(path, '"when" must be an object')
  const parts = entries.map(([key, value]) => {
    const here = [...path, key]
    switch (key) {
      case 'stepType':
        return stepType(value as never)
      case 'metadata':
        if (!isJsonObject(value)) throw new Misspelt(here, '"metadata" must be an object of keys and values')
        return all(...Object.entries(value).map(([name, wanted]) => hasMetadata(name, wanted ?? undefined)))
      case 'all':
      case 'any': {
        if (!Array.isArray(value)) throw new Misspelt(here, `"${key}" must be a list`)
        const inner = value.map((each: Json, i) => toMatcher(each, [...here, i]))
        return key === 'all' ? all(...inner) : any(...inner)
      }
      case 'not':
        return not(toMatcher(value, here))
      default:
        throw new Misspelt(here, `there is no "${key}" in "when". Known: metadata, stepType, all, any, not`)
    }
  })
  return all(...parts)
}
