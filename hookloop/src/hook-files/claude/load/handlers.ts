import { isJsonObject, type Json, type JsonObject } from '../../../values/json.ts'
import { nearestName } from '../../../values/nearest-name.ts'
import { commandName } from '../../../system/processes/command-name.ts'
import { MAX_TIMER_MS } from '../../../system/timeout.ts'
import { defined } from '../../defined.ts'
import { NOT_BLANK, schemaCheck } from '../../schema-check.ts'
import type { Fingerprint } from '../../trust/fingerprint.ts'
import {
  claudeEventNames,
  eventSpec,
  handlerTypes,
  isClaudeEvent,
  typeTimeouts,
  type ClaudeEvent,
  type HandlerType,
} from '../events/claude-events.ts'

export type HookSource = {
  readonly kind: 'managed' | 'user' | 'project' | 'local' | 'plugin' | 'skill' | 'agent' | 'given'
  /** The file, or a description of settings in code. */
  readonly file: string
  /** The folder of its plugin, skill or agent. */
  readonly root?: string
  /** The name of the skill or agent. */
  readonly name?: string
  /** The fingerprint of the file when it was read. */
  readonly print?: Fingerprint
  /** The options that the user has set for the plugin. */
  readonly options?: { readonly [name: string]: string }
  /** The folder of the plugin of a skill. */
  readonly plugin?: string
  /** Variables for its hooks, from the file itself and from the user. */
  readonly env?: { readonly [name: string]: string }
}

type Common = {
  readonly if?: string
  /** In milliseconds. */
  readonly timeoutMs: number
  readonly hasOwnTimeout: boolean
  readonly once: boolean
  readonly statusMessage?: string
  readonly onFailure: 'continue' | 'block'
}

export type CommandHandler = Common & {
  readonly type: 'command'
  readonly command: string
  readonly args?: readonly string[]
  /** `default`: bash if it is installed, otherwise sh. */
  readonly shell: 'default' | 'bash' | 'sh' | 'powershell'
  readonly async: boolean
  readonly asyncRewake: boolean
}
export type HttpHandler = Common & {
  readonly type: 'http'
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  readonly allowedEnvVars: readonly string[]
}
export type McpHandler = Common & {
  readonly type: 'mcp_tool'
  readonly server: string
  readonly tool: string
  readonly input: JsonObject
}
export type PromptHandler = Common & {
  readonly type: 'prompt' | 'agent'
  readonly prompt: string
  readonly model?: string
  readonly continueOnBlock: boolean
}
export type Handler = CommandHandler | HttpHandler | McpHandler | PromptHandler

/** The line for a shell, or the program and its arguments. */
export function wordsOf({ command, args }: CommandHandler): string | readonly string[] {
  return args === undefined ? command : [command, ...args]
}

/** A name for a handler, without arguments and addresses, which may contain secrets: for messages that a model reads. */
export function shortName(handler: Handler): string {
  switch (handler.type) {
    case 'command':
      return commandName(wordsOf(handler))
    case 'http':
      return new URL(handler.url).host
    case 'mcp_tool':
      return `${handler.server}/${handler.tool}`
    case 'prompt':
    case 'agent':
      return handler.type
    default:
      return handler satisfies never
  }
}

export type HookGroup = {
  readonly event: ClaudeEvent
  readonly matcher: string | undefined
  readonly handlers: readonly Handler[]
  readonly source: HookSource
}

/** An entry that is left out, and why. */
export type ConfigProblem = { readonly source: HookSource; readonly where: string; readonly message: string }

export function describeProblem({ source, where, message }: ConfigProblem): string {
  return `${source.file}${where === '' ? '' : ` ${where}`}: ${message}`
}

/** The problem, and what follows from it. */
export function leftOutText(problem: ConfigProblem): string {
  return `${describeProblem(problem).replace(/(?<![?])$/, '.')} It is left out.`
}

type ReadHooks = { readonly groups: readonly HookGroup[]; readonly problems: readonly ConfigProblem[] }

/** Reads the `hooks` of a settings file. Invalid entries are left out and reported; the others apply. */
export function readGroups(hooks: Json | undefined, source: HookSource): ReadHooks {
  const problems: ConfigProblem[] = []
  const leaveOut = (where: string, message: string): readonly [] => {
    problems.push({ source, where, message })
    return []
  }
  // Claude Code ignores fields that it does not know. One with a typo, such as "matchr", would silently not apply.
  const leaveOutUnknown = (
    where: string,
    given: JsonObject,
    { what, known }: { readonly what: string; readonly known: readonly string[] },
  ): void => {
    for (const name of Object.keys(given).filter((each) => !known.includes(each))) {
      const near = nearestName(name, known)
      if (near === undefined && source.kind !== 'given') continue
      const hint = near === undefined ? `known: ${known.join(', ')}` : `did you mean "${near}"?`
      leaveOut(`${where}.${name}`, `it is not a field of ${what}; ${hint}`)
    }
  }
  const readGroup = (event: ClaudeEvent, group: Json, where: string): readonly HookGroup[] => {
    if (!isJsonObject(group)) return leaveOut(where, 'it must be an object with "hooks"')
    const { matcher, hooks: given } = group
    if (matcher !== undefined && typeof matcher !== 'string') return leaveOut(where, '"matcher" must be a string')
    if (!Array.isArray(given)) return leaveOut(where, '"hooks" must be a list of handlers')
    leaveOutUnknown(where, group, { what: 'a group', known: ['matcher', 'hooks'] })
    const handlers = given.flatMap((each: Json, i): readonly Handler[] => {
      const read = readHandler(each, event)
      if (typeof read === 'string') return leaveOut(`${where}.hooks[${i}]`, read)
      leaveOutUnknown(`${where}.hooks[${i}]`, each as JsonObject, { what: 'a handler', known: handlerFields })
      return [read]
    })
    return handlers.length === 0 ? [] : [{ event, matcher, handlers, source }]
  }
  const readEvent = (name: string, groups: Json): readonly HookGroup[] => {
    if (!isClaudeEvent(name)) {
      const near = nearestName(name, claudeEventNames)
      return leaveOut(name, `it is not an event${near === undefined ? '' : `; did you mean ${near}?`}`)
    }
    if (!Array.isArray(groups)) return leaveOut(name, 'it must be a list of groups')
    return groups.flatMap((group: Json, i) => readGroup(name, group, `${name}[${i}]`))
  }
  if (hooks !== undefined && !isJsonObject(hooks)) leaveOut('hooks', 'it must be an object of events')
  const events = isJsonObject(hooks) ? Object.entries(hooks) : []
  return { groups: events.flatMap(([name, groups]) => readEvent(name, groups)), problems }
}

/** Reads a handler. Returns a text that says what is wrong with an invalid one. */
export function readHandler(given: Json, event: ClaudeEvent): Handler | string {
  const type = isJsonObject(given) ? (given['type'] as HandlerType) : undefined
  if (type === undefined) return 'it must be an object with a "type"'
  if (!handlerTypes.includes(type)) return `"type" must be one of ${handlerTypes.join(', ')}`
  const spec = eventSpec(event)
  if (!spec.types.includes(type)) return `${event} does not support handlers of type ${type}`
  const problem = checks[type](given)
  if (problem !== undefined) return problem.message
  const { timeout, once, onFailure, if: rule, statusMessage, ...fields } = given as unknown as GivenHandler
  const common: Common = {
    timeoutMs: Math.min((timeout ?? spec.timeout ?? typeTimeouts[type]) * 1000, MAX_TIMER_MS),
    hasOwnTimeout: timeout !== undefined,
    once: once === true,
    onFailure: onFailure ?? 'continue',
    ...defined({ if: rule, statusMessage }),
  }
  switch (type) {
    case 'command': {
      const { command, args, shell = 'default', async = false, asyncRewake = false } = fields
      const run = { command: command!, shell, async: async || asyncRewake, asyncRewake, ...defined({ args }) }
      return { ...common, type, ...run }
    }
    case 'http': {
      const { url = '', headers = {}, allowedEnvVars = [] } = fields
      if (!URL.canParse(url))
        return `"url" must be a URL that starts with http:// or https://, not ${JSON.stringify(url)}`
      return { ...common, type, url, headers, allowedEnvVars }
    }
    case 'mcp_tool':
      return { ...common, type, server: fields.server!, tool: fields.tool!, input: fields.input ?? {} }
    case 'prompt':
    case 'agent': {
      const { prompt, model, continueOnBlock = false } = fields
      const isAgent = type === 'agent'
      return { ...common, type, prompt: prompt!, continueOnBlock: continueOnBlock || isAgent, ...(model && { model }) }
    }
    default:
      return type satisfies never
  }
}

/** The fields of a handler of any type. The schema of its type says which are required. */
type GivenHandler = { readonly timeout?: number } & Partial<
  Omit<CommandHandler, 'type'> & Omit<HttpHandler, 'type'> & Omit<McpHandler, 'type'> & Omit<PromptHandler, 'type'>
>

const string = { type: 'string' }
const strings = { type: 'array', items: string }
const flag = { type: 'boolean' }

/** Fields that may be in a handler of any type. Claude Code ignores fields that it does not know. */
const optional: JsonObject = {
  if: string,
  timeout: { type: 'number', exclusiveMinimum: 0 },
  statusMessage: string,
  once: flag,
  args: strings,
  shell: { enum: ['bash', 'sh', 'powershell'] },
  async: flag,
  asyncRewake: flag,
  onFailure: { enum: ['continue', 'block'] },
  headers: { type: 'object', additionalProperties: string },
  allowedEnvVars: strings,
  input: { type: 'object' },
  model: string,
  continueOnBlock: flag,
}

const checks: { readonly [T in HandlerType]: ReturnType<typeof schemaCheck> } = {
  command: checkFor({ command: { type: 'string', pattern: NOT_BLANK } }),
  http: checkFor({ url: { type: 'string', pattern: '^[Hh][Tt][Tt][Pp][Ss]?:' } }),
  mcp_tool: checkFor({ server: string, tool: string }),
  prompt: checkFor({ prompt: string }),
  agent: checkFor({ prompt: string }),
}

const handlerFields = [...Object.keys(optional), ...'type command url server tool prompt'.split(' ')]

function checkFor(required: JsonObject): ReturnType<typeof schemaCheck> {
  return schemaCheck(() => ({
    type: 'object',
    required: Object.keys(required),
    properties: { ...optional, ...required },
  }))
}

/**
 * Identifies a handler: one that is in several settings files runs once. Handlers of different plugins, skills and agents,
 * or with different `onFailure`, are different.
 */
export function identityOf(handler: Handler, { kind, file, root }: HookSource): string {
  const isSettings = ['managed', 'user', 'project', 'local', 'given'].includes(kind)
  const fields = handler as { readonly [name: string]: unknown }
  return JSON.stringify([isSettings ? '' : (root ?? file), ...identifying.map((name) => fields[name])])
}

const identifying = 'type onFailure if command args shell async url headers server tool input prompt model'.split(' ')
