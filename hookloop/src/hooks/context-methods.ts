import { AgentState } from '../state/agent-state.ts'
import { stopReasons, type StopReason } from '../state/continuation.ts'
import {
  changeResponse,
  isFinishReason,
  type InferenceRequest,
  type InferenceResponse,
  type ModelSettings,
  type RequestChange,
  type ResponseChange,
  type ToModel,
} from '../state/inference.ts'
import { exactJson, toJson, type Json, type JsonObject } from '../state/json.ts'
import type { List } from '../state/list.ts'
import { isReplyPart, toInput, toMessages, type Message } from '../state/message.ts'
import type { ToolCall, ToolExecution } from '../state/tool-call.ts'
import { AgentError } from '../errors.ts'
import type { CompactOptions } from './compaction.ts'
import { BaseContext, type Verdict, type Vote } from './base-context.ts'
import type { Ability } from './triggers.ts'

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

/** Within one hook, too, a verdict is only ever raised. */
function decide(context: BaseContext, verdict: Verdict): BaseContext {
  const before = BaseContext.draftOf(context).verdict
  if (before !== undefined && severity[before.decision] >= severity[verdict.decision]) return context
  return BaseContext.change(context, { verdict })
}

function checkedChange({ content, finishReason, text }: ResponseChange): ResponseChange {
  const parts = content === undefined ? undefined : toJson(content)
  if (parts !== undefined && !(Array.isArray(parts) && parts.every(isReplyPart))) {
    throw invalid('The content of a response is a list of parts: text, reasoning, file or tool-call.', content)
  }
  if (finishReason !== undefined && !isFinishReason(finishReason)) {
    throw invalid(`"${String(finishReason)}" is no finish reason.`, finishReason)
  }
  return {
    ...(parts !== undefined && { content: parts }),
    ...(finishReason !== undefined && { finishReason }),
    ...(text !== undefined && { text: wordsOf(text) }),
  }
}

function invalid(message: string, value: unknown): AgentError {
  return new AgentError('HOOK_INVALID_OPTION', message, { value })
}

function voted(decision: Vote['decision'], reason: StopReason, message: string, details: Details = {}): Vote {
  const given = details.reason ?? reason
  if (!stopReasons.includes(given))
    throw invalid(`There is no reason "${given}". Known: ${stopReasons.join(', ')}.`, given)
  return {
    decision,
    reason: given,
    message: wordsOf(message),
    ...(details.value !== undefined && { value: toJson(details.value) }),
  }
}

/** Without types anything may come as a message, and what is kept must be a text. */
function wordsOf(message: unknown): string {
  if (typeof message === 'string') return message
  try {
    return JSON.stringify(message) ?? ''
  } catch {
    return `a ${typeof message} that cannot be shown`
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
    return decide(this, { decision: 'block', message: message === undefined ? undefined : wordsOf(message) })
  },
}

/** What each ability does. A context of a trigger has the methods of its abilities on its prototype. */
export const abilities: { readonly [A in Ability]: { readonly [method: string]: Method } } = {
  state: {
    withState(this: BaseContext, change: (state: AgentState) => AgentState): BaseContext {
      const state = change(this.state)
      if (!(state instanceof AgentState)) {
        throw new AgentError('HOOK_NO_RETURN', 'withState() was given a function that returns no state.', {
          value: state,
        })
      }
      if (AgentState.derives(state, this.state)) return BaseContext.change(this, { state })
      throw new AgentError(
        'HOOK_FOREIGN_CONTEXT',
        'withState() was given a state of another run or moment. Build it from the state that the function receives.',
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
    withOutput(this: BaseContext, output: unknown): BaseContext {
      const execution = fact<ToolExecution | undefined>(this, 'toolExecution')
      if (execution === undefined) return withFact(this, 'output', toJson(output))
      return withFact(this, 'toolExecution', Object.freeze({ ...execution, output: toJson(output) }))
    },
  },
  messages: {
    withMessages(this: BaseContext, messages: Iterable<Message>): BaseContext {
      return withFact(this, 'messages', toMessages(messages, fact<List<Message>>(this, 'messages')))
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
      return BaseContext.change(this, { recovery: { decision: 'retry', afterMs: Math.max(0, options?.afterMs ?? 0) } })
    },
    ignore(this: BaseContext): BaseContext {
      return BaseContext.change(this, { recovery: { decision: 'ignore', afterMs: 0 } })
    },
  },
  within: {
    within(this: BaseContext, ms: number): BaseContext {
      if (!(ms >= 0)) throw invalid('The time a call may take is a number of milliseconds.', ms)
      return BaseContext.limit(this, ms)
    },
  },
  compact: {
    compact(this: BaseContext, { keep, pin, requested = false, summarize }: CompactOptions): BaseContext {
      if (!Number.isInteger(keep) || keep < 0) throw invalid('"keep" is how many messages stay, from 0 up.', keep)
      if (typeof summarize !== 'function')
        throw invalid('"summarize" is a function that writes the summary.', summarize)
      if (pin !== undefined && typeof pin !== 'function') throw invalid('"pin" is a function of a message.', pin)
      return BaseContext.change(this, { compact: { keep, requested, summarize, ...(pin !== undefined && { pin }) } })
    },
  },
  block,
  permit: {
    ...block,
    ask(this: BaseContext, message: string): BaseContext {
      return decide(this, { decision: 'ask', message: wordsOf(message) })
    },
    allow(this: BaseContext, message?: string): BaseContext {
      return decide(this, { decision: 'allow', message: message === undefined ? undefined : wordsOf(message) })
    },
  },
}

/** A request with some of it replaced. What is undefined stays as it was. */
export function changeRequest(request: InferenceRequest, change: RequestChange, toModel: ToModel): InferenceRequest {
  const { messages, model, tools, system, settings, responseFormat, toolChoice } = definedOf(change)
  if (system !== undefined && typeof system !== 'string') throw invalid('The system prompt is a text.', system)
  if (tools !== undefined && !(Array.isArray(tools) && tools.every((name) => typeof name === 'string'))) {
    throw invalid('The tools of a request are a list of names.', tools)
  }
  return Object.freeze({
    ...request,
    ...(system !== undefined && { system }),
    ...(toolChoice !== undefined && { toolChoice: exactJson(toolChoice, 'tool choice') as typeof toolChoice }),
    ...(model !== undefined && { model: toModel(model) }),
    ...(tools !== undefined && { tools: Object.freeze([...tools]) }),
    ...(settings !== undefined && { settings: exactJson(settings, 'settings') as ModelSettings }),
    ...(responseFormat !== undefined && { responseFormat: exactJson(responseFormat, 'response format') as JsonObject }),
    ...(messages !== undefined && { messages: toMessages(messages, request.messages) }),
  })
}

function definedOf<T extends object>(change: T): T {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) as T
}
