import { isJsonObject, type Json, type JsonObject } from '../../../state/json.ts'
import { MAX_TIMER_MS } from '../../../system/timeout.ts'
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

/** Where a hook stands. */
export type HookSource = {
  readonly kind: 'managed' | 'user' | 'project' | 'local' | 'plugin' | 'skill' | 'agent' | 'given'
  /** The file, or words for what was given in code. */
  readonly file: string
  /** The folder of the plugin, skill or agent it belongs to. */
  readonly root?: string
  /** The name of the skill or agent. */
  readonly name?: string
  /** The file as it was when it was read. */
  readonly print?: Fingerprint
  /** What the user has set for a plugin. */
  readonly options?: { readonly [name: string]: string }
  /** The folder of the plugin that a skill belongs to. */
  readonly plugin?: string
  /** Variables that its hooks see: those of the file itself, and of its user. */
  readonly env?: { readonly [name: string]: string }
}

type Common = {
  readonly if?: string
  /** In milliseconds. */
  readonly timeoutMs: number
  /** Whether somebody has said so. */
  readonly hasOwnTimeout: boolean
  readonly once: boolean
  readonly statusMessage?: string
  readonly onFailure: 'continue' | 'block'
}

export type CommandHandler = Common & {
  readonly type: 'command'
  readonly command: string
  readonly args?: readonly string[]
  /** `default`: bash where there is one, otherwise sh. */
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

export type HookGroup = {
  readonly event: ClaudeEvent
  readonly matcher: string | undefined
  readonly handlers: readonly Handler[]
  readonly source: HookSource
}

/** An entry that was left out, and why. */
export type ConfigProblem = { readonly source: HookSource; readonly where: string; readonly message: string }

export type ReadHooks = { readonly groups: readonly HookGroup[]; readonly problems: readonly ConfigProblem[] }

/** Reads the `hooks` of a settings file. What cannot be understood is left out and named; the rest stays. */
export function readHooks(hooks: Json | undefined, source: HookSource): ReadHooks {
  const reading = new Reading(source)
  if (hooks === undefined) return reading
  if (!isJsonObject(hooks)) reading.leaveOut('hooks', 'it must be an object of events')
  else for (const [event, groups] of Object.entries(hooks)) reading.event(event, groups)
  return reading
}

class Reading implements ReadHooks {
  readonly groups: HookGroup[] = []
  readonly problems: ConfigProblem[] = []
  readonly #source: HookSource

  constructor(source: HookSource) {
    this.#source = source
  }

  leaveOut(where: string, message: string): void {
    this.problems.push({ source: this.#source, where, message })
  }

  event(name: string, groups: Json): void {
    if (!isClaudeEvent(name)) {
      const near = claudeEventNames.find((event) => event.toLowerCase() === name.toLowerCase())
      return this.leaveOut(name, `there is no such event${near === undefined ? '' : `; did you mean ${near}?`}`)
    }
    if (!Array.isArray(groups)) return this.leaveOut(name, 'it must be a list of groups')
    groups.forEach((group: Json, i) => this.#group(name, group, `${name}[${i}]`))
  }

  #group(event: ClaudeEvent, group: Json, where: string): void {
    if (!isJsonObject(group)) return this.leaveOut(where, 'it must be an object with "hooks"')
    const { matcher, hooks } = group
    if (matcher !== undefined && typeof matcher !== 'string') return this.leaveOut(where, '"matcher" must be a text')
    if (!Array.isArray(hooks)) return this.leaveOut(where, '"hooks" must be a list of handlers')
    const handlers = hooks.flatMap((given: Json, i) => {
      const read = readHandler(given, event)
      if (typeof read !== 'string') return [read]
      this.leaveOut(`${where}.hooks[${i}]`, read)
      return []
    })
    if (handlers.length > 0) this.groups.push({ event, matcher, handlers, source: this.#source })
  }
}

/** A handler, or what is wrong with it. */
export function readHandler(given: Json, event: ClaudeEvent): Handler | string {
  if (!isJsonObject(given)) return 'it must be an object with a "type"'
  const type = given['type'] as HandlerType
  if (!handlerTypes.includes(type)) return `"type" must be one of ${handlerTypes.join(', ')}`
  const spec = eventSpec(event)
  if (!spec.types.includes(type)) return `a handler of type ${type} cannot be used at ${event}`
  const wrong = wrongField(given)
  if (wrong !== undefined) return wrong
  const { timeout = spec.timeout ?? typeTimeouts[type] } = given
  const common: Common = {
    timeoutMs: Math.min((timeout as number) * 1000, MAX_TIMER_MS),
    hasOwnTimeout: given['timeout'] !== undefined,
    once: given['once'] === true,
    onFailure: given['onFailure'] === 'block' ? 'block' : 'continue',
    ...(typeof given['if'] === 'string' && { if: given['if'] }),
    ...(typeof given['statusMessage'] === 'string' && { statusMessage: given['statusMessage'] }),
  }
  return makers[type](given, common)
}

const makers: { readonly [T in HandlerType]: (given: JsonObject, common: Common) => Handler | string } = {
  command: ({ command, args, shell = 'default', async, asyncRewake }, common) =>
    typeof command !== 'string' || command.trim() === ''
      ? '"command" is missing'
      : {
          ...common,
          type: 'command',
          command,
          shell: shell as 'default',
          async: async === true || asyncRewake === true,
          asyncRewake: asyncRewake === true,
          ...(args !== undefined && { args: args as readonly string[] }),
        },
  http: ({ url, headers = {}, allowedEnvVars = [] }, common) =>
    typeof url !== 'string' || !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)
      ? '"url" must be an address that begins with http: or https:'
      : {
          ...common,
          type: 'http',
          url,
          headers: headers as HttpHandler['headers'],
          allowedEnvVars: allowedEnvVars as readonly string[],
        },
  mcp_tool: ({ server, tool, input = {} }, common) =>
    typeof server !== 'string' || typeof tool !== 'string'
      ? '"server" and "tool" are needed'
      : { ...common, type: 'mcp_tool', server, tool, input: input as JsonObject },
  prompt: (given, common) => promptHandler('prompt', given, common),
  agent: (given, common) => promptHandler('agent', given, common),
}

function promptHandler(type: 'prompt' | 'agent', { prompt, model, continueOnBlock }: JsonObject, common: Common) {
  if (typeof prompt !== 'string') return '"prompt" is missing'
  return {
    ...common,
    type,
    prompt,
    continueOnBlock: continueOnBlock === true || type === 'agent',
    ...(typeof model === 'string' && { model }),
  }
}

/** What a field must be, if it is there. */
const fieldTypes: { readonly [name: string]: (value: Json) => boolean } = {
  if: (value) => typeof value === 'string',
  timeout: (value) => typeof value === 'number' && value > 0 && Number.isFinite(value),
  statusMessage: (value) => typeof value === 'string',
  once: (value) => typeof value === 'boolean',
  args: isTexts,
  shell: (value) => ['bash', 'sh', 'powershell'].includes(value as string),
  async: (value) => typeof value === 'boolean',
  asyncRewake: (value) => typeof value === 'boolean',
  onFailure: (value) => value === 'continue' || value === 'block',
  headers: (value) => isJsonObject(value) && Object.values(value).every((each) => typeof each === 'string'),
  allowedEnvVars: isTexts,
  input: isJsonObject,
  model: (value) => typeof value === 'string',
  continueOnBlock: (value) => typeof value === 'boolean',
}

function isTexts(value: Json): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}

function wrongField(given: JsonObject): string | undefined {
  const wrong = Object.entries(given).find(
    ([name, value]) => Object.hasOwn(fieldTypes, name) && !fieldTypes[name]!(value),
  )
  return wrong && `"${wrong[0]}" cannot be ${JSON.stringify(wrong[1])}`
}

/**
 * The same handler in several settings files runs once. Copies of a plugin, skill or agent stay apart, and so does one
 * that fails closed from one that does not.
 */
export function identityOf(handler: Handler, { kind, file, root }: HookSource): string {
  const isSettings = ['managed', 'user', 'project', 'local', 'given'].includes(kind)
  const { type, onFailure, if: rule } = handler
  return JSON.stringify([isSettings ? '' : (root ?? file), type, onFailure, rule, ...whatRuns(handler)])
}

function whatRuns(handler: Handler): readonly unknown[] {
  switch (handler.type) {
    case 'command':
      return [handler.command, handler.args, handler.shell, handler.async]
    case 'http':
      return [handler.url, handler.headers]
    case 'mcp_tool':
      return [handler.server, handler.tool, handler.input]
    case 'prompt':
    case 'agent':
      return [handler.prompt, handler.model]
    default:
      return handler satisfies never
  }
}
