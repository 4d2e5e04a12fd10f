import { AgentState } from '../data/agent-state.ts'
import type { StopReason } from '../data/continuation.ts'
import {
  changeResponse,
  type InferenceRequest,
  type InferenceResponse,
  type RequestChange,
  type ResponseChange,
} from '../data/inference.ts'
import { exactJson, toJson, type Json } from '../data/json.ts'
import type { List } from '../data/list.ts'
import { toInput, toMessages, type Message, type Part } from '../data/message.ts'
import type { ToolCall, ToolExecution } from '../data/tool-call.ts'
import { AgentError } from '../errors.ts'
import { Context, type Verdict, type Vote } from './draft.ts'
import type { Ability } from './triggers.ts'

type Details = { readonly reason?: StopReason; readonly value?: Json }
type Method = (this: Context, ...args: never[]) => Context

function withFact(context: Context, name: string, value: unknown): Context {
  return Context.change(context, { facts: { ...Context.draftOf(context).facts, [name]: value } })
}

function fact<T>(context: Context, name: string): T {
  return Context.draftOf(context).facts[name] as T
}

function cast(context: Context, vote: Vote): Context {
  return Context.change(context, { votes: [...Context.draftOf(context).votes, Object.freeze(vote)] })
}

const severity = { allow: 1, ask: 2, block: 3 }

/** Within one hook, too, a verdict is only ever raised. */
function decide(context: Context, verdict: Verdict): Context {
  const before = Context.draftOf(context).verdict
  if (before !== undefined && severity[before.decision] >= severity[verdict.decision]) return context
  return Context.change(context, { verdict })
}

function voted(decision: Vote['decision'], reason: StopReason, message: string, details: Details = {}): Vote {
  return {
    decision,
    reason: details.reason ?? reason,
    message: wordsOf(message),
    ...(details.value !== undefined && { value: toJson(details.value) }),
  }
}

/** Without types anything may come as a message, and what is kept must be a text. */
function wordsOf(message: unknown): string {
  return typeof message === 'string' ? message : (JSON.stringify(message) ?? '')
}

const stop = {
  stop(this: Context, message: string, details?: Details): Context {
    return cast(this, voted('forbidContinuation', 'stopRequested', message, details))
  },
}

const requestContinuation = {
  requestContinuation(this: Context, message: string): Context {
    return cast(this, voted('requestContinuation', 'completed', message))
  },
}

const block = {
  block(this: Context, message?: string): Context {
    return decide(this, { decision: 'block', message })
  },
}

/** What each ability does. A context of a trigger has the methods of its abilities on its prototype. */
export const abilities: { readonly [A in Ability]: { readonly [method: string]: Method } } = {
  state: {
    withState(this: Context, change: (state: AgentState) => AgentState): Context {
      const state = change(this.state)
      if (!(state instanceof AgentState)) {
        throw new AgentError('HOOK_NO_RETURN', 'withState() was given a function that returns no state.', {
          value: state,
        })
      }
      if (AgentState.derives(state, this.state)) return Context.change(this, { state })
      throw new AgentError(
        'HOOK_FOREIGN_CONTEXT',
        'withState() was given a state of another run or moment. Build it from the state that the function receives.',
      )
    },
  },
  input: {
    withInput(this: Context, input: string | Message): Context {
      return withFact(this, 'input', toInput(input))
    },
  },
  request: {
    withRequest(this: Context, change: RequestChange): Context {
      return withFact(this, 'request', changeRequest(fact<InferenceRequest>(this, 'request'), change))
    },
  },
  response: {
    withResponse(this: Context, change: ResponseChange): Context {
      const plain = change.content ? { ...change, content: toJson(change.content) as readonly Part[] } : change
      return withFact(this, 'response', changeResponse(fact<InferenceResponse>(this, 'response'), plain))
    },
  },
  args: {
    withArgs(this: Context, args: unknown): Context {
      const call = fact<ToolCall>(this, 'toolCall')
      return withFact(this, 'toolCall', Object.freeze({ ...call, args: exactJson(args, 'arguments') }))
    },
  },
  output: {
    withOutput(this: Context, output: unknown): Context {
      const execution = fact<ToolExecution | undefined>(this, 'toolExecution')
      if (execution === undefined) return withFact(this, 'output', toJson(output))
      return withFact(this, 'toolExecution', Object.freeze({ ...execution, output: toJson(output) }))
    },
  },
  messages: {
    withMessages(this: Context, messages: Iterable<Message>): Context {
      return withFact(this, 'messages', toMessages(messages, fact<List<Message>>(this, 'messages')))
    },
  },
  stop,
  continue: requestContinuation,
  vote: {
    ...stop,
    ...requestContinuation,
    allowStop(this: Context, message: string, details?: Details): Context {
      return cast(this, voted('allowStop', 'completed', message, details))
    },
    allowContinuation(this: Context, message: string): Context {
      return cast(this, voted('allowContinuation', 'completed', message))
    },
  },
  recover: {
    retry(this: Context, options?: { readonly afterMs?: number }): Context {
      return Context.change(this, { recovery: { decision: 'retry', afterMs: Math.max(0, options?.afterMs ?? 0) } })
    },
    ignore(this: Context): Context {
      return Context.change(this, { recovery: { decision: 'ignore', afterMs: 0 } })
    },
  },
  block,
  permit: {
    ...block,
    ask(this: Context, message: string): Context {
      return decide(this, { decision: 'ask', message })
    },
    allow(this: Context, message?: string): Context {
      return decide(this, { decision: 'allow', message })
    },
  },
}

/** A request with some of it replaced. */
export function changeRequest(request: InferenceRequest, change: RequestChange): InferenceRequest {
  const { messages, ...rest } = change
  return Object.freeze({
    ...request,
    ...rest,
    messages: messages === undefined ? request.messages : toMessages(messages, request.messages),
  })
}
