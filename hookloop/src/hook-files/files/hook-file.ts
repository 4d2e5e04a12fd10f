import { http, type HttpOptions } from '../../actions/http.ts'
import { prompt, type PromptOptions } from '../../actions/prompt.ts'
import { shell, type ShellOptions } from '../../actions/shell.ts'
import { subagent } from '../../actions/subagent.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { messageOf, type AgentError } from '../../errors.ts'
import type { Action } from '../../hooks/action.ts'
import { guard, hook, observe, type Hook } from '../../hooks/hook.ts'
import type { Matcher } from '../../hooks/matchers.ts'
import { toNameTest } from '../../hooks/patterns.ts'
import { isAround, isTrigger, triggerNames } from '../../hooks/triggers.ts'
import { claudeAction } from '../claude/claude-action.ts'
import { claudeEventNames, eventSpec, isClaudeEvent, triggersOfEvent } from '../claude/events/claude-events.ts'
import { whenOf } from './hook-condition.ts'
import { InvalidEntry } from './invalid-entry.ts'
import { invalid, readDocument, type Path, type ReadDocument } from './read-document.ts'

/** Where a hook of a file comes from, in the order in which they are put together. */
export const sourceKinds = ['user', 'project', 'plugin', 'skill', 'agent'] as const

export type FileSource = {
  readonly kind: (typeof sourceKinds)[number]
  readonly file: string
  /** The skill or the agent that it belongs to. Its hooks are in force while that is. */
  readonly owner?: string | undefined
}

export type FileHook = {
  readonly hook: Hook
  readonly source: FileSource
  readonly entry: JsonObject
  readonly line: number
  /** The folder that its commands run in. */
  readonly cwd: string
}

/** What the user lets files of others do. */
export type Allowed = {
  /** Variables of the environment that their hooks may see or send. */
  readonly env: readonly string[]
  /** Whether their hooks may ask addresses of this machine and its network. */
  readonly privateAddresses: boolean
}

/** How hooks of a file are made. */
export type HookMaking = {
  /** The folder that commands run in. */
  readonly cwd: string
  /** The project that the agent works in, for commands to see. */
  readonly projectDir: string
  /** Whose rules hold for a file of somebody else. The user's own is bound by none. */
  readonly allowed: Allowed
  /** Names that are taken already. */
  readonly taken: Set<string>
  /** Puts what has to be seen to around an action: whether its files are still trusted, and what it may answer. */
  readonly hold?: (action: Action, entry: JsonObject) => Action
  /** Is told of an entry with a mistake that may be a guard, which is left out then. Without it, the file is refused. */
  readonly onMistake?: ((mistake: AgentError) => void) | undefined
  /** What must hold for every hook of the file. */
  readonly when?: Matcher | undefined
}

export type ReadHooks = {
  readonly hooks: readonly FileHook[]
  readonly allowed: Allowed | undefined
  /** Mistakes in entries that only watch. The others apply without them. */
  readonly mistakes: readonly AgentError[]
}

/** What an entry may say beside its action. The published schema has the same. */
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
export const actionKinds = ['shell', 'http', 'prompt', 'subagent', 'claude'] as const

type ActionKind = (typeof actionKinds)[number]

/** Reads a file of hooks. */
export function readHookFile(text: string, source: FileSource, making: HookMaking): ReadHooks {
  return readHooks(readDocument(text, source.file), source, making)
}

/**
 * Hooks as a document has them. No entry with a mistake is skipped that may be a guard, or change something: it would silently
 * not apply, so the whole is refused, with the line. One that can only watch is left out, and told.
 */
export function readHooks({ value, lineOf }: ReadDocument, source: FileSource, making: HookMaking): ReadHooks {
  const { file, kind } = source
  const refuse = (path: Path, why: string): AgentError => invalid(file, lineOf(path), why)
  if (!isJsonObject(value)) throw refuse([], 'it must be an object with "hooks"')
  const stray = Object.keys(value).find((key) => !['$schema', 'hooks', 'description', 'allow'].includes(key))
  if (stray !== undefined) throw refuse([stray], `"${stray}" is not known; hooks stand under "hooks"`)
  const { hooks = [], allow, $schema, description } = value
  if (!Array.isArray(hooks)) throw refuse(['hooks'], '"hooks" must be a list')
  for (const [key, words] of Object.entries({ $schema, description })) {
    if (words !== undefined && typeof words !== 'string') throw refuse([key], `"${key}" must be a text`)
  }
  if (allow !== undefined && kind !== 'user') {
    throw refuse(['allow'], 'what hooks may do is allowed by your own file, not by this one')
  }
  const mistakes: AgentError[] = []
  try {
    const allowed = allow === undefined ? undefined : toAllowed(allow)
    return { allowed, hooks: hooks.flatMap((entry: Json, i) => readOrTell(entry, i)), mistakes }
  } catch (error) {
    throw refusalOf(error)
  }

  function refusalOf(error: unknown): unknown {
    return error instanceof InvalidEntry ? refuse(error.path, error.message.replace(/\.$/, '')) : error
  }

  function readOrTell(entry: Json, i: number): readonly FileHook[] {
    try {
      return [readEntry(entry, i)]
    } catch (error) {
      const tell = onlyWatches(entry) ? (mistake: AgentError) => void mistakes.push(mistake) : making.onMistake
      if (tell === undefined) throw error
      tell(refusalOf(error) as AgentError)
      return []
    }
  }

  function readEntry(entry: Json, i: number): FileHook {
    try {
      const made = toHook(entry, { ...making, source })
      return { hook: made, source, entry: entry as JsonObject, line: lineOf(['hooks', i]), cwd: making.cwd }
    } catch (error) {
      throw new InvalidEntry(['hooks', i, ...(error instanceof InvalidEntry ? error.path : [])], messageOf(error))
    }
  }
}

/**
 * Whether an entry is for watching, whatever is wrong with it. Who says what happens when it fails means one that decides,
 * whatever mode is written there.
 */
function onlyWatches(entry: Json): boolean {
  return isJsonObject(entry) && entry['mode'] === 'observe' && entry['onFailure'] === undefined
}

function toAllowed(allow: Json): Allowed {
  const { env = [], privateAddresses = false, ...rest } = isJsonObject(allow) ? allow : { none: true }
  const [stray] = Object.keys(rest)
  if (stray !== undefined) throw new InvalidEntry(['allow'], '"allow" takes "env", a list, and "privateAddresses"')
  if (!isTexts(env)) throw new InvalidEntry(['allow', 'env'], '"env" must be a list of names')
  if (typeof privateAddresses !== 'boolean') {
    throw new InvalidEntry(['allow', 'privateAddresses'], '"privateAddresses" must be true or false')
  }
  return { env, privateAddresses }
}

type Making = HookMaking & { readonly source: FileSource }

function toHook(entry: Json, making: Making): Hook {
  if (!isJsonObject(entry)) throw new InvalidEntry([], 'a hook must be an object')
  const known: readonly string[] = [...entryFields, ...actionKinds]
  const stray = Object.keys(entry).find((key) => !known.includes(key))
  if (stray !== undefined) throw new InvalidEntry([stray], `there is no "${stray}". Known: ${known.join(', ')}`)
  const given = actionKinds.filter((kind) => entry[kind] !== undefined)
  if (given.length !== 1) throw new InvalidEntry([], `a hook needs exactly one of ${actionKinds.join(', ')}`)
  const [kind] = given as [ActionKind]
  const mode = modes.find((each) => each === entry['mode'])
  if (mode === undefined) throw new InvalidEntry(['mode'], `"mode" must be one of ${modes.join(', ')}`)
  const on = triggersOf(entry['on'])
  if (kind === 'claude') checkEvent(entry[kind]!, on)
  const options = optionsOf(entry, making)
  const bare = within(kind, () => toAction(kind, entry[kind]!, making))
  const action = making.hold === undefined ? bare : making.hold(bare, entry)
  const make = { guard, hook, observe }[mode] as unknown as (on: string[], action: Action, options: object) => Hook
  const name = nameFor(entry, action.label, making)
  const made = make(on, action, { ...options, name })
  take(name, entry, making) // now that nothing is wrong with it: one that is left out keeps no name from another
  return made
}

function within<T>(key: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw error instanceof InvalidEntry ? error : new InvalidEntry([key], messageOf(error))
  }
}

function triggersOf(on: Json | undefined): string[] {
  const names = typeof on === 'string' ? [on] : Array.isArray(on) ? on : []
  if (names.length === 0)
    throw new InvalidEntry(['on'], `"on" must be a trigger, or a list of them: ${known.join(', ')}`)
  for (const name of names) {
    if (isTrigger(name) && !isAround(name)) continue
    const isNear = (each: string): boolean => each.toLowerCase() === String(name).toLowerCase()
    const event = claudeEventNames.find(isNear)
    const guess = known.find(isNear) ?? (event && eventSpec(event).trigger)
    const hint = guess === undefined ? `. Known: ${known.join(', ')}` : `; did you mean "${guess}"?`
    throw new InvalidEntry(['on'], `there is no trigger ${JSON.stringify(name)}${hint}`)
  }
  return names as string[]
}

const known = triggerNames.filter((name) => !isAround(name))

/** A handler for an event fires where that event does, and nowhere else. */
function checkEvent(given: Json, on: readonly string[]): void {
  const event = isJsonObject(given) ? given['event'] : undefined
  if (typeof event !== 'string' || !isClaudeEvent(event)) return
  const { type = 'command' } = given as JsonObject
  if (type !== 'command' && type !== 'http') {
    throw new InvalidEntry(['claude', 'type'], '"type" must be "command" or "http"; for a model there is "prompt"')
  }
  const triggers: readonly string[] = triggersOfEvent(event)
  if (triggers.length > 0 && on.some((each) => !triggers.includes(each))) {
    throw new InvalidEntry(['on'], `${event} fires at ${triggers.join(' and ')} and nowhere else`)
  }
}

function toAction(kind: ActionKind, given: Json, { cwd, projectDir, source, allowed }: Making): Action {
  const shortFor = { shell: 'command', http: 'url', prompt: 'prompt', subagent: 'prompt', claude: 'command' }
  const options = typeof given === 'string' ? { [shortFor[kind]]: given } : given
  if (!isJsonObject(options)) throw new InvalidEntry([kind], `"${kind}" must be an object`)
  if (source.kind !== 'user') checkAllowed(kind, options, allowed)
  switch (kind) {
    case 'shell': {
      const { env = {}, ...rest } = options as ShellOptions
      return shell({ cwd, ...rest, env: isJsonObject(env) ? { HOOKLOOP_PROJECT_DIR: projectDir, ...env } : env })
    }
    case 'http':
      return http(options as HttpOptions)
    case 'prompt':
      return prompt(options as PromptOptions)
    case 'subagent':
      return toSubagent(options)
    case 'claude':
      return claudeAction(options, { cwd, source: { kind: 'given', file: source.file } })
    default:
      return kind satisfies never
  }
}

/** A project does not say which of the user's secrets it gets, or which doors of the machine it may knock at. */
function checkAllowed(kind: ActionKind, options: JsonObject, { env, privateAddresses }: Allowed): void {
  const [key, named] =
    kind === 'shell' ? ['passEnv', options['passEnv']] : ['allowedEnvVars', options['allowedEnvVars']]
  const stray = isTexts(named) ? named.find((name) => !env.includes(name)) : undefined
  if (stray !== undefined) {
    throw new InvalidEntry([kind, key], `${stray} is not among the variables that your own file allows under "allow"`)
  }
  if (options['allowPrivate'] === true && !privateAddresses) {
    throw new InvalidEntry([kind, 'allowPrivate'], 'your own file must say so: "allow": { "privateAddresses": true }')
  }
}

export const subagentFields = [
  'name',
  'prompt',
  'instructions',
  'tools',
  'model',
  'answer',
  'maxSteps',
  'maxTokens',
] as const

function toSubagent(options: JsonObject): Action {
  const stray = Object.keys(options).find((key) => !(subagentFields as readonly string[]).includes(key))
  if (stray !== undefined) throw new InvalidEntry(['subagent', stray], `there is no "${stray}" of a subagent`)
  const { name, prompt: question, instructions, tools, model, answer, maxSteps, maxTokens } = options
  for (const [key, value] of Object.entries({ instructions, model, name })) {
    if (value !== undefined && typeof value !== 'string')
      throw new InvalidEntry(['subagent', key], `"${key}" must be a text`)
  }
  if (tools !== undefined && !isTexts(tools))
    throw new InvalidEntry(['subagent', 'tools'], '"tools" must be a list of names')
  for (const [key, value] of Object.entries({ maxSteps, maxTokens })) {
    const isCount = value === undefined || (Number.isSafeInteger(value) && (value as number) >= 1)
    if (!isCount) throw new InvalidEntry(['subagent', key], `"${key}" must be a whole number from 1 up`)
  }
  return subagent({
    prompt: question as string,
    ...(name !== undefined && { name: name as string }),
    ...(answer !== undefined && { answer: answer as 'verdict' }),
    definition: {
      ...(instructions !== undefined && { instructions: instructions as string }),
      ...(tools !== undefined && { tools }),
      ...(model !== undefined && { model: model as string }),
      limits: {
        ...(maxSteps !== undefined && { maxSteps: maxSteps as number }),
        ...(maxTokens !== undefined && { maxTokens: maxTokens as number }),
      },
    },
  })
}

function isTexts(value: Json | undefined): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}

function optionsOf(entry: JsonObject, { when: always }: Making): object {
  const { tool, when, priority, timeoutMs, onFailure, stream } = entry
  for (const [key, type] of optionTypes) {
    if (entry[key] !== undefined && typeof entry[key] !== type)
      throw new InvalidEntry([key], `"${key}" must be a ${type}`)
  }
  if (stream === 'window') throw new InvalidEntry(['stream'], 'an action sees an answer once: "hold" or "after"')
  return {
    ...(tool !== undefined && { tool: toolPattern(tool as string) }),
    ...whenOf(when, always),
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

/** A name is given once in a file. What another file has called so stays, and this one says whose it is. */
function nameFor({ name: given }: JsonObject, label: string, { taken, source }: Making): string {
  if (typeof given === 'string') {
    if (given.trim() === '') throw new InvalidEntry(['name'], '"name" must not be empty')
    if (taken.has(keyIn(source, given)))
      throw new InvalidEntry(['name'], `another hook of this file is called "${given}"`)
  }
  const wanted = typeof given === 'string' ? given : label
  const other = `${source.kind}:${wanted}`
  if (!taken.has(wanted)) return wanted
  if (!taken.has(other)) return other
  // Names are taken from 2 up, so the first that is free lies above every one that is not.
  let [low, high] = [1, 2]
  while (taken.has(`${other} ${high}`)) [low, high] = [high, high * 2]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (taken.has(`${other} ${middle}`)) low = middle
    else high = middle
  }
  return `${other} ${high}`
}

function take(name: string, { name: given }: JsonObject, { taken, source }: Making): void {
  taken.add(name)
  if (typeof given === 'string') taken.add(keyIn(source, given))
}

function keyIn({ file }: FileSource, name: string): string {
  return `${file}\0${name}`
}

/** A name, one with `*` in it, or a regular expression between slashes. */
function toolPattern(text: string): string | RegExp {
  if (text === '') throw new InvalidEntry(['tool'], '"tool" must not be empty; leave it out for every tool')
  const expression = /^\/(.*)\/([a-z]*)$/s.exec(text)
  if (expression === null) return text
  return within('tool', () => {
    const pattern = new RegExp(expression[1]!, expression[2])
    toNameTest(pattern) // one that cannot be matched in linear time is refused here, and not when an agent is made
    return pattern
  })
}
