import { AgentError } from '../errors.ts'
import type { Execution, Step } from './execution.ts'
import { exactJson, type Json, type JsonObject } from './json.ts'
import { List } from './list.ts'
import { toMessage, toMessages, type Message } from './message.ts'
import { addUsage, noUsage, type Usage } from './usage.ts'

/** Bumped when the JSON of a state changes in a way an older version cannot read. */
export const STATE_VERSION = 1

/** Where the metadata of a conversation name the model it uses, if that is another one than its agent's. */
export const MODEL_KEY = 'hookloop.model'

/** Where the metadata of a conversation hold its list of tasks. */
export const TASKS_KEY = 'hookloop.tasks'

/** Where they say, with `true`, that somebody wants it summed up before its next step. */
export const COMPACT_KEY = 'hookloop.compact'

/** Where the metadata of a conversation name it, for lists. */
export const TITLE_KEY = 'hookloop.title'

/** Where the metadata of a conversation hold variables that its commands see. */
export const ENVIRONMENT_KEY = 'hookloop.environment'

export type StateFields = {
  readonly agentId: string
  readonly parentId: string | undefined
  readonly messages: List<Message>
  readonly systemPrompt: string
  readonly responseFormat: JsonObject | undefined
  readonly metadata: JsonObject
  /** What earlier executions spent. */
  readonly spentBefore: Usage
  readonly executionCount: number
  readonly execution: Execution | undefined
}

/**
 * Everything a run knows, as one immutable value. Hooks change the conversation and the metadata with the `with…`
 * methods, which return a changed copy; only the loop writes the execution.
 */
export class AgentState {
  readonly #fields: StateFields

  private constructor(fields: StateFields) {
    this.#fields = fields
    Object.freeze(this)
  }

  static create(fields: Partial<StateFields> & { readonly agentId: string }): AgentState {
    return new AgentState({ ...blank, ...fields })
  }

  /** For the loop, which alone may write the execution. */
  static patch(state: AgentState, change: Partial<StateFields>): AgentState {
    const now = state.#fields
    return new AgentState({
      agentId: now.agentId,
      parentId: now.parentId,
      messages: change.messages ?? now.messages,
      systemPrompt: change.systemPrompt ?? now.systemPrompt,
      responseFormat: 'responseFormat' in change ? change.responseFormat : now.responseFormat,
      metadata: change.metadata ?? now.metadata,
      spentBefore: change.spentBefore ?? now.spentBefore,
      executionCount: change.executionCount ?? now.executionCount,
      execution: change.execution ?? now.execution,
    })
  }

  /** Everything a state consists of. */
  static fieldsOf(state: AgentState): StateFields {
    return state.#fields
  }

  /** Whether a hook could have made `later` out of `earlier`: the loop's part is untouched. */
  static derives(later: AgentState, earlier: AgentState): boolean {
    const [a, b] = [later.#fields, earlier.#fields]
    return a.execution === b.execution && a.spentBefore === b.spentBefore && a.agentId === b.agentId
  }

  get agentId(): string {
    return this.#fields.agentId
  }
  get parentId(): string | undefined {
    return this.#fields.parentId
  }
  get messages(): List<Message> {
    return this.#fields.messages
  }
  get systemPrompt(): string {
    return this.#fields.systemPrompt
  }
  get responseFormat(): JsonObject | undefined {
    return this.#fields.responseFormat
  }
  get metadata(): JsonObject {
    return this.#fields.metadata
  }
  /** Everything spent on this state, over all its executions. */
  get usage(): Usage {
    const { spentBefore, execution } = this.#fields
    return execution === undefined ? spentBefore : addUsage(spentBefore, execution.usage)
  }
  get executionCount(): number {
    return this.#fields.executionCount
  }
  get execution(): Execution | undefined {
    return this.#fields.execution
  }
  /** Closed steps of the current execution. */
  get stepCount(): number {
    return this.#fields.execution?.steps.length ?? 0
  }
  get lastStep(): Step | undefined {
    return this.#fields.execution?.steps.at(-1)
  }

  withMessage(message: Message | string): AgentState {
    return AgentState.patch(this, { messages: this.messages.append(toMessage(message, 'message')) })
  }

  /** Another conversation in place of this one. */
  withMessages(messages: Iterable<Message>): AgentState {
    return AgentState.patch(this, { messages: toMessages(messages, this.messages) })
  }

  withSystemPrompt(text: string): AgentState {
    if (typeof text !== 'string') {
      throw new AgentError('AGENT_INVALID_OPTION', 'A system prompt is a text.', { value: text })
    }
    return AgentState.patch(this, { systemPrompt: text })
  }

  withResponseFormat(format: JsonObject | undefined): AgentState {
    const responseFormat = format && (exactJson(format, 'response format') as JsonObject)
    return AgentState.patch(this, { responseFormat })
  }

  /** Throws JSON_INVALID for a value that would not survive being saved. */
  withMetadata(key: string, value: unknown): AgentState {
    const json = exactJson(value, `metadata "${key}"`)
    return AgentState.patch(this, { metadata: metadataOf({ ...this.metadata, [key]: json }) })
  }

  withoutMetadata(key: string): AgentState {
    const { [key]: _removed, ...rest } = this.metadata
    return AgentState.patch(this, { metadata: metadataOf(rest) })
  }

  [Symbol.for('nodejs.util.inspect.custom')](): JsonObject {
    return this.toJSON()
  }

  /** Always in the same order, so that equal states have equal texts. */
  toJSON(): JsonObject {
    const {
      agentId,
      parentId,
      messages,
      systemPrompt,
      responseFormat,
      metadata,
      spentBefore,
      executionCount,
      execution,
    } = this.#fields
    return {
      version: STATE_VERSION,
      agentId,
      ...(parentId !== undefined && { parentId }),
      messages: messages.toJSON(),
      systemPrompt,
      ...(responseFormat !== undefined && { responseFormat }),
      metadata,
      spentBefore,
      executionCount,
      ...(execution !== undefined && { execution: { ...execution, steps: execution.steps.toJSON() } }),
    }
  }
}

/** Metadata has no prototype, so that a guard reading `metadata['constructor']` finds nothing. */
export function metadataOf(entries: JsonObject): JsonObject {
  const metadata: Record<string, Json> = Object.create(null) as Record<string, Json>
  for (const key of Object.keys(entries)) if (key !== '__proto__') metadata[key] = entries[key]!
  return Object.freeze(metadata)
}

const blank: Omit<StateFields, 'agentId'> = {
  parentId: undefined,
  messages: List.empty<Message>(),
  systemPrompt: '',
  responseFormat: undefined,
  metadata: metadataOf({}),
  spentBefore: noUsage,
  executionCount: 0,
  execution: undefined,
}
