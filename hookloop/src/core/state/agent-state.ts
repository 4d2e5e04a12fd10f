import { AgentError } from '../../errors.ts'
import { shownExecution, type Execution, type ExecutionFields, type Step } from './execution.ts'
import { exactJson, type Json, type JsonObject } from '../../values/json.ts'
import { messagesOf, type InferenceRequest } from './inference.ts'
import { List } from './list.ts'
import { toMessage, toMessages, type Message } from './message.ts'
import { addUsage, noUsage, type Usage } from './usage.ts'

/** Incremented when the JSON of a state changes so that older versions cannot read it. */
export const STATE_VERSION = 2

/** The same for the JSON of a saved run. */
export const SAVED_VERSION = 2

/** Metadata: the name of the model of this conversation, if it is not that of the agent. */
export const MODEL_KEY = 'hookloop.model'

/** Metadata: the task list. */
export const TASKS_KEY = 'hookloop.tasks'

/** Metadata: `true` requests a summary before the next step. */
export const COMPACT_KEY = 'hookloop.compact'

/** Metadata: the title of the conversation, for lists. */
export const TITLE_KEY = 'hookloop.title'

/** Metadata: in a subagent, its name and depth. */
export const SUBAGENT_KEY = 'hookloop.subagent'

/** Metadata: the id of environment variables for commands. */
export const ENVIRONMENT_KEY = 'hookloop.environment'

/** The keys of the state's metadata that more than one capability reads. */
export const metadataKeys = {
  /** `true` requests a summary before the next step. */
  compact: COMPACT_KEY,
  /** The id of environment variables for commands. */
  environment: ENVIRONMENT_KEY,
  /** In a subagent, its name and depth. */
  subagent: SUBAGENT_KEY,
  /** The task list. */
  tasks: TASKS_KEY,
  /** The title of the conversation, for lists. */
  title: TITLE_KEY,
} as const

export type StateFields = {
  readonly agentId: string
  readonly parentId: string | undefined
  readonly messages: List<Message>
  readonly systemPrompt: string
  readonly responseFormat: JsonObject | undefined
  readonly metadata: JsonObject
  /** The usage of earlier executions. */
  readonly spentBefore: Usage
  readonly executionCount: number
  readonly execution: ExecutionFields | undefined
}

/**
 * The complete state of a run, as one immutable value. Hooks change the conversation and the metadata with the `with…` methods,
 * which return a changed copy. Only the loop changes the execution.
 */
export class AgentState {
  readonly #fields: StateFields

  private constructor(fields: StateFields) {
    this.#fields = fields
    Object.freeze(this)
  }

  /** @internal */
  static create(fields: Partial<StateFields> & { readonly agentId: string }): AgentState {
    return new AgentState({ ...blank, ...fields })
  }

  /** @internal For the loop: hooks must not write the execution. */
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

  /** @internal For the loop: changes the execution, which there must be. */
  static patchExecution(state: AgentState, change: Partial<ExecutionFields>): AgentState {
    return AgentState.patch(state, { execution: Object.freeze({ ...state.#fields.execution!, ...change }) })
  }

  /** @internal All fields of a state. */
  static fieldsOf(state: AgentState): StateFields {
    return state.#fields
  }

  /** @internal Whether `later` can be a hook's change of `earlier`: the part of the loop is the same. */
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
  get messages(): readonly Message[] {
    return this.#fields.messages.items
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
  /** The usage of all executions. */
  get usage(): Usage {
    const { spentBefore, execution } = this.#fields
    return execution === undefined ? spentBefore : addUsage(spentBefore, execution.usage)
  }
  get executionCount(): number {
    return this.#fields.executionCount
  }
  get execution(): Execution | undefined {
    const { execution } = this.#fields
    return execution && shownExecution(execution)
  }
  /** The number of finished steps of the current execution. */
  get stepCount(): number {
    return this.#fields.execution?.steps.length ?? 0
  }
  get lastStep(): Step | undefined {
    return this.#fields.execution?.steps.at(-1)
  }

  withMessage(message: Message | string): AgentState {
    return AgentState.patch(this, { messages: this.#fields.messages.append(toMessage(message, 'message')) })
  }

  /** Replaces the conversation. */
  withMessages(messages: Iterable<Message>): AgentState {
    return AgentState.patch(this, { messages: toMessages(messages, this.#fields.messages) })
  }

  withSystemPrompt(text: string): AgentState {
    if (typeof text !== 'string') {
      throw new AgentError('AGENT_INVALID_OPTION', 'The system prompt must be a string.', { value: text })
    }
    return AgentState.patch(this, { systemPrompt: text })
  }

  withResponseFormat(format: JsonObject | undefined): AgentState {
    const responseFormat = format && (exactJson(format, 'response format') as JsonObject)
    return AgentState.patch(this, { responseFormat })
  }

  /** Throws JSON_INVALID for a value that is not JSON. */
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

  /** Fields are always in the same order, so that equal states have equal JSON. */
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
      messages: messages.items,
      systemPrompt,
      ...(responseFormat !== undefined && { responseFormat }),
      metadata,
      spentBefore,
      executionCount,
      ...(execution !== undefined && { execution: executionJson(execution) }),
    }
  }
}

/**
 * The messages of a state or of a request as a list. Unlike `messages` it is not copied, and what is computed with its `fold`
 * costs only what is new, so that a step costs the same however long the run is.
 */
export function messageList(of: AgentState | Pick<InferenceRequest, 'messages'>): List<Message> {
  return of instanceof AgentState ? AgentState.fieldsOf(of).messages : messagesOf(of)
}

/** The steps come last, wherever they were set. */
function executionJson({ steps, ...fields }: ExecutionFields): JsonObject {
  return { ...fields, steps: steps.items }
}

/** Without a prototype, so that a guard that reads `metadata['constructor']` gets undefined. */
export function metadataOf(entries: JsonObject): JsonObject {
  const metadata: Record<string, Json> = Object.create(null) as Record<string, Json>
  for (const key of Object.keys(entries)) if (key !== '__proto__') metadata[key] = entries[key]!
  return Object.freeze(metadata)
}

const blank: Omit<StateFields, 'agentId'> = {
  parentId: undefined,
  messages: List.from<Message>([]),
  systemPrompt: '',
  responseFormat: undefined,
  metadata: metadataOf({}),
  spentBefore: noUsage,
  executionCount: 0,
  execution: undefined,
}
