import { checkedSettings } from '../state/model-settings.ts'
import { checkOptions, definedOptions, optionNames } from '../../values/check-options.ts'
import { describeValue } from '../../values/describe-value.ts'
import { AgentState } from '../state/agent-state.ts'
import { stopReasons, type StopReason } from '../state/continuation.ts'
import {
  changeResponse,
  isFinishReason,
  messagesOf,
  withMessages,
  withoutMessages,
  type InferenceRequest,
  type InferenceResponse,
  type RequestChange,
  type ResponseChange,
  type ToModel,
} from '../state/inference.ts'
import { exactJson, isJsonObject, toJson, type Json, type JsonObject } from '../../values/json.ts'
import { List } from '../state/list.ts'
import { isReplyPart, toInput, toMessages, type Message } from '../state/message.ts'
import type { ToolCall, ToolExecution } from '../state/tool-call.ts'
import { AgentError } from '../../errors.ts'
import type { CompactOptions } from './compaction.ts'
import { spentTokens, type TokenUsage } from '../state/usage.ts'
import { BaseContext, type AskOptions, type Mode, type Verdict, type Vote } from './base-context.ts'
import type { InferOptions } from './infer.ts'
import { specOf, triggerNames, type Ability, type HookTrigger } from './triggers.ts'

type Details = { readonly reason?: StopReason; readonly value?: Json }
type Method = (this: BaseContext, ...args: never[]) => BaseContext

function withFact(context: BaseContext, name: string, value: unknown): BaseContext {
  return BaseContext.change(context, { facts: { ...BaseContext.draftOf(context).facts, [name]: value } })
}

function fact<T>(context: BaseContext, name: string): T {
  return BaseContext.draftOf(context).facts[name] as T
}

function cast(context: BaseContext, vote: Vote): BaseContext {
  return BaseContext.change(context, { votes: [...BaseContext.draftOf(context).votes, Object.freeze(vote)] })
}

const severity = { allow: 1, ask: 2, block: 3 }

/** A hook can only raise its own verdict: a block stays a block. */
function decide(context: BaseContext, verdict: Verdict): BaseContext {
  const before = BaseContext.draftOf(context).verdict
  if (before !== undefined && severity[before.decision] >= severity[verdict.decision]) return context
  return BaseContext.change(context, { verdict })
}

function checkedChange(change: ResponseChange): ResponseChange {
  checkOptions('ctx.withResponse', change, ['content', 'finishReason', 'text'], 'HOOK_INVALID_OPTION')
  // A redaction that forgets to return its result must not send the original.
  const lost = Object.entries(change).find(([, value]) => value === undefined)?.[0]
  if (lost !== undefined) {
    throw invalid(`ctx.withResponse: "${lost}" is undefined. Omit a field that does not change.`, change)
  }
  const { content, finishReason, text } = change
  if (text !== undefined && content !== undefined) {
    throw invalid('ctx.withResponse: a response gets either "text" or "content": the text is in its content.', change)
  }
  const parts = content === undefined ? undefined : toJson(content)
  if (parts !== undefined && !(Array.isArray(parts) && parts.every(isReplyPart))) {
    throw invalid('The content of a response must be a list of parts: text, reasoning, file or tool-call.', content)
  }
  if (finishReason !== undefined && !isFinishReason(finishReason)) {
    throw invalid(`"${String(finishReason)}" is not a finish reason.`, finishReason)
  }
  return {
    ...(parts !== undefined && { content: parts }),
    ...(finishReason !== undefined && { finishReason }),
    ...(text !== undefined && { text }),
  }
}

function invalid(message: string, value: unknown): AgentError {
  return new AgentError('HOOK_INVALID_OPTION', message, { value })
}

const noDetails: Details = Object.freeze({})

function voted(decision: Vote['decision'], reason: StopReason, message: string, details = noDetails): Vote {
  const where = `ctx.${decision === 'allowStop' ? 'allowStop' : 'stop'}`
  if (details !== noDetails) checkOptions(where, details, ['reason', 'value'], 'HOOK_INVALID_OPTION')
  const given = details.reason ?? reason
  if (!stopReasons.includes(given))
    throw invalid(`Unknown stop reason "${given}". Known: ${stopReasons.join(', ')}.`, given)
  return {
    decision,
    reason: given,
    message,
    ...(details.value !== undefined && { value: toJson(details.value) }),
  }
}

const stop = {
  stop(this: BaseContext, message: string, details?: Details): BaseContext {
    return cast(this, voted('forbidContinuation', 'stopRequested', message, details))
  },
}

const requestContinuation = {
  requestContinuation(this: BaseContext, message: string): BaseContext {
    return cast(this, voted('requestContinuation', 'completed', message))
  },
}

const block = {
  block(this: BaseContext, message?: string): BaseContext {
    return decide(this, { decision: 'block', message })
  },
}

const ask = {
  ask(this: BaseContext, message: string): BaseContext {
    return decide(this, { decision: 'ask', message })
  },
}

/** The methods of each ability. A context class has the methods of the abilities of its trigger and mode. */
const abilities: { readonly [A in Ability]: { readonly [method: string]: Method } } = {
  state: {
    withState(this: BaseContext, change: (state: AgentState) => AgentState): BaseContext {
      const state = change(this.state)
      if (!(state instanceof AgentState)) {
        throw new AgentError('HOOK_NO_RETURN', 'The function passed to withState() must return a state.', {
          value: state,
        })
      }
      if (AgentState.derives(state, this.state)) return BaseContext.change(this, { state })
      throw new AgentError(
        'HOOK_FOREIGN_CONTEXT',
        'The function passed to withState() must return a state made from the one it receives.',
      )
    },
  },
  input: {
    withInput(this: BaseContext, input: string | Message): BaseContext {
      return withFact(this, 'input', toInput(input))
    },
  },
  request: {
    withRequest(this: BaseContext, change: RequestChange): BaseContext {
      const { toModel } = BaseContext.hostOf(this)
      return withFact(this, 'request', changeRequest(fact<InferenceRequest>(this, 'request'), change, toModel))
    },
  },
  response: {
    withResponse(this: BaseContext, change: ResponseChange): BaseContext {
      const response = changeResponse(fact<InferenceResponse>(this, 'response'), checkedChange(change))
      return withFact(this, 'response', response)
    },
  },
  args: {
    withArgs(this: BaseContext, args: unknown): BaseContext {
      const call = fact<ToolCall>(this, 'toolCall')
      return withFact(this, 'toolCall', Object.freeze({ ...call, args: exactJson(args, 'arguments') }))
    },
  },
  output: {
    withOutput(this: BaseContext, value: unknown): BaseContext {
      const output = toJson(value)
      const execution = fact<ToolExecution | undefined>(this, 'toolExecution')
      if (execution === undefined) return withFact(this, 'output', output)
      return withFact(this, 'toolExecution', Object.freeze({ ...execution, output }))
    },
  },
  messages: {
    withMessages(this: BaseContext, messages: Iterable<Message>): BaseContext {
      const known = List.from(fact<readonly Message[]>(this, 'messages'))
      return withFact(this, 'messages', messagesFrom(messages, known).items)
    },
  },
  stop,
  continue: requestContinuation,
  vote: {
    ...stop,
    ...requestContinuation,
    allowStop(this: BaseContext, message: string, details?: Details): BaseContext {
      return cast(this, voted('allowStop', 'completed', message, details))
    },
    allowContinuation(this: BaseContext, message: string): BaseContext {
      return cast(this, voted('allowContinuation', 'completed', message))
    },
  },
  recover: {
    retry(this: BaseContext, options?: { readonly afterMs?: number }): BaseContext {
      checkOptions('ctx.retry', options === undefined ? {} : options, ['afterMs'], 'HOOK_INVALID_OPTION')
      const afterMs = options?.afterMs ?? 0
      if (!(afterMs >= 0)) throw invalid('"afterMs" must be a number of milliseconds, 0 or more.', afterMs)
      return BaseContext.change(this, { recovery: { decision: 'retry', afterMs } })
    },
    ignore(this: BaseContext): BaseContext {
      return BaseContext.change(this, { recovery: { decision: 'ignore', afterMs: 0 } })
    },
  },
  within: {
    within(this: BaseContext, ms: number): BaseContext {
      if (!(ms >= 0)) throw invalid('The time limit of a call must be a number of milliseconds.', ms)
      return BaseContext.limit(this, ms)
    },
  },
  compact: {
    compact(this: BaseContext, options: CompactOptions): BaseContext {
      checkOptions('ctx.compact', options, ['keep', 'pin', 'requested', 'summarize'], 'HOOK_INVALID_OPTION')
      const { keep, pin, requested = false, summarize } = options
      if (!Number.isInteger(keep) || keep < 0) throw invalid('"keep" must be a number of messages, 0 or more.', keep)
      return BaseContext.change(this, { compact: { keep, requested, summarize, ...(pin !== undefined && { pin }) } })
    },
  },
  block,
  ask,
  permit: {
    ...block,
    ask(this: BaseContext, message: string, options?: AskOptions): BaseContext {
      checkOptions('ctx.ask', options === undefined ? {} : options, ['byDefault'], 'HOOK_INVALID_OPTION')
      const byDefault = options?.byDefault ?? false
      return decide(this, { decision: 'ask', message, byDefault })
    },
    allow(this: BaseContext, message?: string): BaseContext {
      return decide(this, { decision: 'allow', message })
    },
  },
}

/** Names that people know from elsewhere, and what they are called here: the first that a context has. */
const otherNames: { readonly [name: string]: readonly string[] } = {
  deny: ['block', 'stop'],
  reject: ['block', 'stop'],
  approve: ['allow'],
  abort: ['stop'],
  cancel: ['stop'],
  setArgs: ['withArgs'],
  updateArgs: ['withArgs'],
  setState: ['withState'],
  addMessage: ['withState'],
}

/** Methods that throw with the name that a method has here, for those who know it from elsewhere. */
function misnamed(trigger: HookTrigger, methods: object): PropertyDescriptorMap {
  const aliases = Object.entries(otherNames).map(([name, meant]) => {
    const own = meant.find((each) => each in methods)
    const hint = own === undefined ? '' : ` It is called "${own}" here.`
    const value = (): never => {
      throw new AgentError('HOOK_FAILED', `There is no ctx.${name}() at ${trigger}.${hint}`)
    }
    return [name, { value }] as const
  })
  return Object.fromEntries(aliases)
}

/** For hooks and guards: they may call models. */
const infers: PropertyDescriptorMap = {
  infer: {
    value(this: BaseContext, options: InferOptions): Promise<unknown> {
      return BaseContext.infer(this, options)
    },
  },
}

/** For around hooks: they return no context, so their spending is counted at once. */
const spendsAtOnce: PropertyDescriptorMap = {
  spend: {
    value(this: BaseContext, usage: Partial<TokenUsage>): void {
      BaseContext.hostOf(this).spend(spentTokens(usage))
    },
  },
}

/** For observers: they change nothing, so no replay can depend on how long something took. */
const seesDurations: PropertyDescriptorMap = {
  durationMs: {
    get(this: BaseContext): unknown {
      return BaseContext.draftOf(this).facts['durationMs']
    },
  },
  ledger: {
    get(this: BaseContext): unknown {
      const { timedLedger, ledger } = BaseContext.hostOf(this)
      return timedLedger ?? ledger
    },
  },
}

/** One class for each trigger and mode, with the methods of its abilities and no others. */
export const contextClasses = Object.fromEntries(
  triggerNames.map((trigger) => {
    const { hook, guard } = specOf(trigger)
    const transform = hook === 'around' ? define(trigger, [], spendsAtOnce) : define(trigger, hook, infers)
    // Guards at `beforeInference` decide on model calls, so they make none.
    const deciding = define(trigger, guard, trigger === 'beforeInference' ? {} : infers)
    return [trigger, { transform, guard: deciding, observe: define(trigger, [], seesDurations) }]
  }),
) as { readonly [T in HookTrigger]: { readonly [M in Mode]: typeof BaseContext } }

function define(trigger: HookTrigger, can: readonly Ability[], properties: PropertyDescriptorMap): typeof BaseContext {
  const methods: { readonly [name: string]: Method } = Object.assign({}, ...can.map((ability) => abilities[ability]))
  class Misnamed extends BaseContext {}
  Object.defineProperties(Misnamed.prototype, misnamed(trigger, methods))
  class TriggerContext extends Misnamed {}
  for (const name of specOf(trigger).carries) {
    Object.defineProperty(TriggerContext.prototype, name, {
      enumerable: true,
      get(this: BaseContext): unknown {
        return BaseContext.draftOf(this).facts[name]
      },
    })
  }
  for (const [name, method] of Object.entries(methods)) {
    Object.defineProperty(TriggerContext.prototype, name, { value: method })
  }
  Object.defineProperties(TriggerContext.prototype, properties)
  return TriggerContext
}

/** A request with some fields replaced. Fields that are undefined do not change. */
export function changeRequest(request: InferenceRequest, change: RequestChange, toModel: ToModel): InferenceRequest {
  checkOptions('withRequest', change, requestFields, 'HOOK_INVALID_OPTION')
  const { messages, model, tools, system, settings, responseFormat, toolChoice } = definedOptions(change)
  if (system !== undefined && typeof system !== 'string') throw invalid('The system prompt must be a string.', system)
  if (tools !== undefined && !(Array.isArray(tools) && tools.every((name) => typeof name === 'string'))) {
    throw invalid('The tools of a request must be a list of names.', tools)
  }
  if (responseFormat !== undefined && !isJsonObject(responseFormat)) {
    throw invalid('The response format of a request must be a JSON Schema object.', responseFormat)
  }
  if (toolChoice !== undefined && !isToolChoice(toolChoice)) {
    throw invalid(`The tool choice of a request must be 'auto', 'required', 'none' or { tool: name }.`, toolChoice)
  }
  const known = messagesOf(request)
  const changed = {
    ...withoutMessages(request),
    ...(system !== undefined && { system }),
    ...(toolChoice !== undefined && { toolChoice: exactJson(toolChoice, 'tool choice') as typeof toolChoice }),
    ...(model !== undefined && { model: toModel(model) }),
    ...(tools !== undefined && { tools: Object.freeze([...tools]) }),
    ...(settings !== undefined && { settings: checkedSettings('withRequest', settings) }),
    ...(responseFormat !== undefined && { responseFormat: exactJson(responseFormat, 'response format') as JsonObject }),
  }
  return withMessages(changed, messages === undefined ? known : messagesFrom(messages, known))
}

/** A string is a list of characters, each of which would be a message. */
function messagesFrom(messages: unknown, known: List<Message>): List<Message> {
  const isList = typeof messages === 'object' && messages !== null && Symbol.iterator in messages
  if (isList) return toMessages(messages as Iterable<Message>, known)
  throw invalid(`The messages must be a list of messages, not ${describeValue(messages)}.`, messages)
}

function isToolChoice(choice: unknown): boolean {
  if (isJsonObject(choice)) return typeof choice['tool'] === 'string' && Object.keys(choice).length === 1
  return choice === 'auto' || choice === 'required' || choice === 'none'
}

export const requestFields = optionNames<RequestChange>({
  messages: true,
  model: true,
  tools: true,
  system: true,
  settings: true,
  responseFormat: true,
  toolChoice: true,
})
