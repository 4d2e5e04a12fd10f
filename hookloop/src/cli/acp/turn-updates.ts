import { textOfJson } from '../../values/json.ts'
import type { SessionUpdate, ToolCallUpdate } from '@agentclientprotocol/sdk'
import type { AgentEvent, OwnEvent } from '../../core/state/event.ts'
import type { AgentPath } from '../../core/state/subagent.ts'
import type { Approval } from '../../core/state/tool-call.ts'
import { noTokens, totalTokens } from '../../core/state/usage.ts'
import { chunk, kindOf, resultUpdate, titleOf } from './content.ts'

type Called = { readonly id: string; readonly name: string; readonly args?: unknown }

/** The events of one turn as updates for an editor. */
export class TurnUpdates {
  readonly #turn: string
  /** The ids that the editor knows calls by: those of models are unique in a step only. */
  readonly #ids = new Map<string, string>()
  #count = 0
  #costUsd: number
  #used = 0

  /** `costUsd` is what the session has cost before. */
  constructor(turn: string, costUsd: number) {
    this.#turn = turn
    this.#costUsd = costUsd
  }

  /** The updates that an event leads to. */
  of(event: AgentEvent): readonly SessionUpdate[] {
    return event.type === 'subagent' ? this.#ofSubagent(event.event, event.path) : this.#ofAgent(event)
  }

  /** The call of a question, for a request of permission, and the updates that must come before it. */
  asked({ toolCall, message, path = [], trigger }: Approval): {
    readonly before: readonly SessionUpdate[]
    readonly toolCall: ToolCallUpdate
  } {
    const before = trigger === undefined ? this.#announce(toolCall, path) : []
    const toolCallId = this.#ids.get(keyOf(toolCall.id, path)) ?? this.#newId()
    const call = trigger === undefined ? toolCall : { name: trigger, args: toolCall.args }
    return {
      before,
      toolCall: {
        toolCallId,
        title: titleOf(call.name, call.args),
        kind: kindOf(call.name),
        status: 'pending',
        rawInput: call.args,
        content: [{ type: 'content', content: { type: 'text', text: message } }],
      },
    }
  }

  #ofAgent(event: OwnEvent): readonly SessionUpdate[] {
    switch (event.type) {
      case 'text':
        return [chunk('agent_message', event.delta)]
      case 'reasoning':
        return [chunk('agent_thought', event.delta)]
      case 'retracted':
        return [chunk('agent_message', `\n\n[The text above was retracted: ${event.why}]\n\n`)] // it cannot be removed
      case 'compacted':
        return [chunk('agent_thought', 'The conversation was summarized.')]
      case 'warning':
        return [chunk('agent_thought', event.message)]
      case 'stepFinished':
        return [this.#spent(event.usage)]
      default:
        return this.#ofCall(event, [])
    }
  }

  /** Of a subagent, only its calls are shown and its costs counted: its text is the result of a call. */
  #ofSubagent(event: OwnEvent, path: AgentPath): readonly SessionUpdate[] {
    return event.type === 'stepFinished'
      ? [this.#spent({ ...noTokens, costUsd: event.usage.costUsd })]
      : this.#ofCall(event, path)
  }

  #ofCall(event: OwnEvent, path: AgentPath): readonly SessionUpdate[] {
    switch (event.type) {
      case 'toolCallDelta':
        return this.#announce({ id: event.callId, name: event.toolName }, path)
      case 'toolStarted': {
        const { id, name, args } = event.call
        const toolCallId = this.#ids.get(keyOf(id, path))
        if (toolCallId === undefined) return this.#announce(event.call, path, 'in_progress')
        const title = this.#title(name, args, path)
        return [{ sessionUpdate: 'tool_call_update', toolCallId, status: 'in_progress', title, rawInput: args }]
      }
      case 'toolProgress': {
        const toolCallId = this.#ids.get(keyOf(event.callId, path))
        if (toolCallId === undefined) return []
        const text = textOfJson(event.update)
        const content = [{ type: 'content', content: { type: 'text', text } } as const]
        return [{ sessionUpdate: 'tool_call_update', toolCallId, content }]
      }
      case 'toolFinished': {
        const before = this.#announce(event.call, path)
        const key = keyOf(event.call.id, path)
        const result = resultUpdate(this.#ids.get(key)!, event.execution)
        this.#ids.delete(key)
        return [...before, { ...result, rawInput: event.call.args } as SessionUpdate]
      }
      default:
        return []
    }
  }

  #announce({ id, name, args }: Called, path: AgentPath, status: 'pending' | 'in_progress' = 'pending') {
    const key = keyOf(id, path)
    if (this.#ids.has(key)) return []
    const toolCallId = this.#newId()
    this.#ids.set(key, toolCallId)
    const update: SessionUpdate = {
      sessionUpdate: 'tool_call',
      toolCallId,
      title: this.#title(name, args, path),
      kind: kindOf(name),
      status,
      ...(args !== undefined && { rawInput: args }),
    }
    return [update]
  }

  #title(name: string, args: unknown, path: AgentPath): string {
    return [...path.map(({ agent }) => agent), titleOf(name, args)].join(' › ')
  }

  #newId(): string {
    return `${this.#turn}/${++this.#count}`
  }

  #spent(usage: typeof noTokens): SessionUpdate {
    this.#costUsd += usage.costUsd
    this.#used = totalTokens(usage) || this.#used
    // How much a model can read is not known, so the bar of an editor is full.
    const cost = { amount: this.#costUsd, currency: 'USD' }
    return { sessionUpdate: 'usage_update', used: this.#used, size: this.#used, cost }
  }
}

function keyOf(id: string, path: AgentPath): string {
  return [...path.map(({ step, call }) => `${step}.${call}`), id].join('/')
}
