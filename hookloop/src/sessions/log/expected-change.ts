import type { AgentState } from '../../state/agent-state.ts'
import { noVotes } from '../../state/continuation.ts'
import { typeOfStep, type Step } from '../../state/execution.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { isPart, textOf, type Message, type Part } from '../../state/message.ts'
import type { ToolCall, ToolExecution } from '../../state/tool-call.ts'
import { addUsage, noTokens, type TokenUsage, type Usage } from '../../state/usage.ts'
import type { RecordEntry } from '../../effects/recording.ts'

/** What a checkpoint adds to a state if no hook changed anything. */
export type ExpectedChange = {
  readonly messages: readonly Message[]
  readonly step: Step | undefined
  readonly usage: Usage | undefined
}

type Known = {
  readonly state: AgentState | undefined
  readonly entries: readonly RecordEntry[]
  /** The input of a run that has just started. */
  readonly input: Message | undefined
}

/**
 * The change that follows from the recorded calls: the answer of the model and the results of its tools, as messages and as a
 * step. A checkpoint only stores how it differs from this. It is part of the format: a log that was written with it must be read
 * with it.
 */
export function expectedChange({ state, entries, input }: Known): ExpectedChange | undefined {
  if (input !== undefined) return { messages: [input], step: undefined, usage: undefined }
  const execution = state?.execution
  if (state === undefined || execution === undefined || entries.length === 0) return undefined
  const place = `${execution.id}/${execution.steps.length}/`
  const call = resultOf(entries, `${place}inference`)
  const response = isJsonObject(call) ? call['response'] : undefined
  if (!isJsonObject(call) || !isJsonObject(response) || !Array.isArray(response['content'])) return undefined
  const content = response['content'] as readonly Part[]
  const toolCalls = callsIn(content)
  const toolExecutions = toolCalls.map((_, i) => resultOf(entries, `${place}${i}/tool`) as ToolExecution | undefined)
  if (!content.every(isPart) || !toolExecutions.every(isExecution)) return undefined
  const usage = { ...noTokens, ...(isJsonObject(call['usage']) ? call['usage'] : {}) } as TokenUsage
  const asked: Message = { role: 'assistant', content }
  return {
    messages:
      toolCalls.length === 0 ? [asked] : [asked, { role: 'tool', content: toResults(toolCalls, toolExecutions) }],
    step: {
      index: execution.steps.length,
      type: typeOfStep({ toolCalls }, true),
      text: textOf(content),
      toolCalls,
      toolExecutions,
      errors: [],
      finishReason: response['finishReason'] as Step['finishReason'],
      usage,
      messageCount: state.messages.length,
      outcome: noVotes,
    },
    usage: addUsage(execution.usage, { ...usage, steps: 1, toolCalls: toolCalls.length }),
  }
}

/** The step that a message of the model and the results after it come from, if no hook changed anything. */
export function expectedStep(
  index: number,
  messages: AgentState['messages'],
  messageCount: number,
  usage = noTokens,
): JsonObject {
  const content = messages.at(messageCount)?.content ?? []
  const toolCalls = callsIn(content)
  const results = messages.at(messageCount + 1)?.content ?? []
  const toolExecutions = results.flatMap((part) =>
    part.type === 'tool-result' ? [{ status: part.isError === true ? 'failed' : 'ok', output: part.output }] : [],
  )
  return {
    index,
    type: typeOfStep({ toolCalls }, true),
    text: textOf(content),
    toolCalls,
    toolExecutions: toolCalls.length === 0 ? [] : toolExecutions,
    errors: [],
    finishReason: toolCalls.length === 0 ? 'stop' : 'tool-calls',
    usage,
    messageCount,
    outcome: noVotes,
  }
}

/** The input of a tool call, from the answer of the model that asked for it. */
export function expectedInput(key: string, entries: readonly RecordEntry[]): Json | undefined {
  const end = key.length - '/tool'.length
  const at = key.lastIndexOf('/', end - 1) + 1
  const index = key.slice(at, end)
  const call = resultOf(entries, `${key.slice(0, at)}inference`)
  const response = isJsonObject(call) ? call['response'] : undefined
  const content = isJsonObject(response) ? response['content'] : undefined
  const asked = Array.isArray(content) ? callsIn(content as readonly Part[])[Number(index)] : undefined
  return asked && { name: asked.name, args: asked.args }
}

/** The result of the call with this key, if it has one. The last calls are the ones that are looked for. */
function resultOf(entries: readonly RecordEntry[], key: string): Json | undefined {
  for (let i = entries.length - 1; i >= 0; i--) {
    const entry = entries[i]!
    if (entry.type === 'end' && entry.key === key) return 'value' in entry ? entry.value : undefined
  }
  return undefined
}

function callsIn(content: readonly Part[]): readonly ToolCall[] {
  const calls: ToolCall[] = []
  for (const part of content)
    if (part.type === 'tool-call')
      calls.push({ id: part.toolCallId, name: part.toolName, args: part.input as JsonObject })
  return calls
}

function isExecution(value: ToolExecution | undefined): value is ToolExecution {
  return isJsonObject(value) && typeof value.status === 'string' && 'output' in value
}

function toResults(calls: readonly ToolCall[], executions: readonly ToolExecution[]): readonly Part[] {
  return calls.map(({ id, name }, i): Part => {
    const { status, output } = executions[i]!
    const part = { type: 'tool-result', toolCallId: id, toolName: name, output } as const
    return status === 'ok' ? part : { ...part, isError: true }
  })
}
