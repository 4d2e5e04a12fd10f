import { http, type HttpOptions } from '../../actions/http.ts'
import { prompt, type PromptOptions } from '../../actions/prompt.ts'
import { shell, type ShellOptions } from '../../actions/shell.ts'
import { subagent, type SubagentOptions } from '../../actions/subagent.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import { messageOf, type AgentError, clause } from '../../errors.ts'
import type { Action } from '../../core/hooks/action.ts'
import { shortPath } from '../../core/hooks/caller-place.ts'
import { definedIn, guard, hook, observe, type Hook } from '../../core/hooks/hook.ts'
import { all, any, hasMetadata, not, stepType, type Matcher } from '../../core/hooks/matchers.ts'
import { toNameTest } from '../../core/hooks/patterns.ts'
import { claudeEventNames, eventSpec } from '../claude/events/claude-events.ts'
import { actionKinds, entrySchema, fileSchema, fileTriggers, type ActionKind, type modes } from './hook-file-schema.ts'
import { defined } from '../defined.ts'
import type { Path, ReadText } from '../../system/files/read-yaml.ts'
import { invalid } from './read-document.ts'
import { schemaCheck, type Problem } from '../schema-check.ts'

/** The kinds of sources of hook files, in the order in which their hooks are combined. */
export const sourceKinds = ['user', 'project', 'plugin', 'skill', 'agent'] as const

export type FileSource = {
  readonly kind: (typeof sourceKinds)[number]
  readonly file: string
  /** The skill or agent that the file belongs to. Its hooks apply only while that is active. */
  readonly owner?: string | undefined
}

export type FileHook = {
  readonly hook: Hook
  readonly source: FileSource
  readonly entry: JsonObject
  readonly line: number
  readonly cwd: string
}

/** What the user allows hooks of other sources to do. */
export type Allowed = {
  /** Environment variables that their hooks may read or send. */
  readonly env: readonly string[] | 'all'
  readonly privateAddresses: boolean
}

export type ReadHooksOptions = {
  readonly cwd: string
  /** The project of the agent, which commands get as a variable. */
  readonly projectDir: string
  /** What the hooks may do, unless the file is the user's own. */
  readonly allowed: Allowed
  /** Names that are in use. */
  readonly taken: Set<string>
  /** Adds the checks that actions of untrusted origin need. */
  readonly restrict?: (action: Action, entry: JsonObject) => Action
  /** Called with each invalid entry, which is then left out. Without it, an invalid entry that may be a guard throws. */
  readonly onMistake?: ((mistake: AgentError) => void) | undefined
  /** A condition for all hooks of the file. */
  readonly when?: Matcher | undefined
}

export type ReadHooks = {
  readonly hooks: readonly FileHook[]
  readonly allowed: Allowed | undefined
  /** Problems of observers, which are left out. The other hooks apply without them. */
  readonly mistakes: readonly AgentError[]
}

class InvalidEntry extends Error {
  readonly path: Path

  constructor({ path, message }: Problem) {
    super(message)
    this.path = path
  }
}

const MAX_HOOKS = 1_000
const checkFile = schemaCheck(fileSchema)
const checkEntry = schemaCheck(entrySchema)

/**
 * Reads the hooks of a document. An invalid entry that may be a guard, or change something, throws an error with its line:
 * if it were skipped, it would silently not apply. An invalid observer is left out and reported.
 */
export function readHooks({ value, lineOf }: ReadText, source: FileSource, options: ReadHooksOptions): ReadHooks {
  const errorAt = ({ path, message }: Problem): AgentError => invalid(source.file, lineOf(path), clause(message))
  const problem = checkFile(value)
  if (problem !== undefined) throw errorAt(problem)
  const { hooks = [], allow } = value as { readonly hooks?: readonly Json[]; readonly allow?: Partial<Allowed> }
  if (allow !== undefined && source.kind !== 'user') {
    throw errorAt({
      path: ['allow'],
      message: 'only the user file can have "allow"; what hooks may do is up to the user',
    })
  }
  if (hooks.length > MAX_HOOKS) throw errorAt({ path: ['hooks'], message: `it has more than ${MAX_HOOKS} hooks` })
  const mistakes: AgentError[] = []
  const read = hooks.flatMap((entry, i): readonly FileHook[] => {
    try {
      const line = lineOf(['hooks', i])
      const made = definedIn(toHook(entry, { ...options, source }), `${shortPath(source.file)}:${line}`)
      return [{ hook: made, source, entry: entry as JsonObject, line, cwd: options.cwd }]
    } catch (error) {
      const path = ['hooks', i, ...(error instanceof InvalidEntry ? error.path : [])]
      const mistake = errorAt({ path, message: messageOf(error) })
      if (isObserver(entry)) mistakes.push(mistake)
      else if (options.onMistake === undefined) throw mistake
      else options.onMistake(mistake)
      return []
    }
  })
  return { hooks: read, allowed: allow && { env: [], privateAddresses: false, ...allow }, mistakes }
}

/** Whether an entry, however invalid, can only observe. With `onFailure`, its author relies on its decision. */
function isObserver(entry: Json): boolean {
  return isJsonObject(entry) && entry['mode'] === 'observe' && entry['onFailure'] === undefined
}

type EntryOptions = ReadHooksOptions & { readonly source: FileSource }

type Entry = {
  readonly name?: string
  readonly on: string | string[]
  readonly mode: (typeof modes)[number]
  readonly tool?: string
  readonly when?: JsonObject
}

function toHook(given: Json, options: EntryOptions): Hook {
  const problem = checkEntry(given)
  if (problem !== undefined) throw new InvalidEntry(problem.path[0] === 'on' ? triggerProblem(given) : problem)
  const json = given as JsonObject
  const entry = given as unknown as Entry
  const kind = actionKinds.find((each) => json[each] !== undefined)!
  const action = atKey(kind, () => toAction(kind, json[kind]!, options))
  const { priority, timeoutMs, onFailure, stream } = json
  const conditions = [options.when, entry.when && toCondition(entry.when)].filter((each) => each !== undefined)
  const name = nameFor(entry.name, action.label, options)
  const make = { guard, hook, observe }[entry.mode] as unknown as (
    on: string[],
    action: Action,
    options: object,
  ) => Hook
  const made = make([entry.on].flat(), options.restrict?.(action, json) ?? action, {
    name,
    ...(conditions.length > 0 && { when: all(...conditions) }),
    ...defined({ tool: entry.tool && toolPattern(entry.tool), priority, timeoutMs, onFailure, stream }),
  })
  // Names are taken last, so that an invalid entry does not take one.
  options.taken.add(name)
  if (entry.name !== undefined) options.taken.add(keyIn(options.source, entry.name))
  return made
}

function atKey<T>(key: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw error instanceof InvalidEntry ? error : new InvalidEntry({ path: [key], message: messageOf(error) })
  }
}

/** Says what is wrong with `on`: often it is a name with other letters, or the event of Claude Code. */
function triggerProblem(entry: Json): Problem {
  const { on = [] } = entry as JsonObject
  const path = ['on']
  const known = fileTriggers.join(', ')
  const wrong = [on].flat().find((name) => !(fileTriggers as readonly unknown[]).includes(name))
  if (wrong === undefined) return { path, message: `"on" must be a trigger, or a list of triggers: ${known}` }
  const isNear = (each: string): boolean => typeof wrong === 'string' && each.toLowerCase() === wrong.toLowerCase()
  const event = claudeEventNames.find(isNear)
  const guess = fileTriggers.find(isNear) ?? (event && eventSpec(event).trigger)
  const hint = guess === undefined ? `. Known: ${known}` : `; did you mean "${guess}"?`
  return { path, message: `there is no trigger ${JSON.stringify(wrong)}${hint}` }
}

/** The options of an action, also from its short form. */
export function optionsOf(kind: ActionKind, given: Json): JsonObject {
  return isJsonObject(given) ? given : { [shortOption[kind]]: given }
}

/** The option that the short form of an action sets. */
const shortOption = {
  shell: 'command',
  http: 'url',
  prompt: 'prompt',
  subagent: 'prompt',
} as const

function toAction(kind: ActionKind, given: Json, { cwd, projectDir, source, allowed }: EntryOptions): Action {
  const options = optionsOf(kind, given)
  if (source.kind !== 'user') checkAllowed(kind, options, allowed)
  switch (kind) {
    case 'shell': {
      const { env, ...rest } = options as ShellOptions
      return shell({ cwd, ...rest, env: { HOOKLOOP_PROJECT_DIR: projectDir, ...env } })
    }
    case 'http':
      return http(options as HttpOptions)
    case 'prompt':
      return prompt(options as PromptOptions)
    case 'subagent': {
      const { prompt: question, name, answer, maxSteps, maxTokens, ...definition } = options
      const limits = defined({ maxSteps, maxTokens }) as { maxSteps?: number }
      const given = { prompt: question, ...defined({ name, answer }) } as Pick<SubagentOptions, 'prompt'>
      return subagent({ ...given, definition: { ...definition, limits } })
    }
    default:
      return kind satisfies never
  }
}

/** The user decides which variables and internal addresses hooks of other sources can use, not the hooks. */
function checkAllowed(kind: ActionKind, options: JsonObject, { env, privateAddresses }: Allowed): void {
  const key = kind === 'shell' ? 'passEnv' : 'allowedEnvVars'
  const denied = (options[key] as readonly string[] | undefined)?.find((name) => env !== 'all' && !env.includes(name))
  if (denied !== undefined) {
    throw new InvalidEntry({
      path: [kind, key],
      message: `the user file does not allow ${denied}: add it to "allow"."env" there`,
    })
  }
  if (options['allowPrivate'] === true && !privateAddresses) {
    const message = 'the user file does not allow private addresses: add "allow": { "privateAddresses": true } there'
    throw new InvalidEntry({ path: [kind, 'allowPrivate'], message })
  }
}

/**
 * A name is unique in its file. If a hook of another file has it already, the kind of the source is put in front, and a
 * number is added if that is taken as well.
 */
function nameFor(given: string | undefined, label: string, { taken, source }: EntryOptions): string {
  if (given !== undefined && taken.has(keyIn(source, given))) {
    throw new InvalidEntry({ path: ['name'], message: `another hook of this file is called "${given}"` })
  }
  const wanted = given ?? label
  if (!taken.has(wanted)) return wanted
  let name = `${source.kind}:${wanted}`
  for (let i = 2; taken.has(name); i++) name = `${source.kind}:${wanted} ${i}`
  return name
}

function keyIn({ file }: FileSource, name: string): string {
  return `${file}\0${name}`
}

/** A name, a name with `*`, or a regular expression between slashes. */
function toolPattern(text: string): string | RegExp {
  const expression = /^\/(.*)\/([a-z]*)$/s.exec(text)
  if (expression === null) return text
  return atKey('tool', () => {
    const pattern = new RegExp(expression[1]!, expression[2])
    toNameTest(pattern) // throws here, and not when an agent is created, if it cannot be matched in linear time
    return pattern
  })
}

/** The `when` of an entry, such as `{ "not": { "metadata": { "role": "guest" } } }`, as a matcher. The schema has checked it. */
function toCondition(when: JsonObject): Matcher {
  const parts = Object.entries(when).map(([key, value]) => {
    switch (key) {
      case 'stepType':
        return stepType(value as never)
      case 'metadata':
        return all(
          ...Object.entries(value as JsonObject).map(([name, wanted]) => hasMetadata(name, wanted ?? undefined)),
        )
      case 'not':
        return not(toCondition(value as JsonObject))
      default: {
        const inner = (value as Json[]).map((each) => toCondition(each as JsonObject))
        return key === 'all' ? all(...inner) : any(...inner)
      }
    }
  })
  return all(...parts)
}
