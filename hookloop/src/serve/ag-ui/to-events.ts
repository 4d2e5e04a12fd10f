import type { AgentEvent, AgentPath, OwnEvent } from '../../plugin.ts'
import type { Approval, FinalRecord, ToolCall, ToolExecution } from '../../index.ts'
import { sameJson, textOfJson, type Json, type JsonObject } from '../../values/json.ts'
import type { ErrorCode } from '../../errors.ts'
import {
  callKey,
  failureText,
  neverRan,
  parsedArgs,
  shownApproval,
  shownDecision,
  shownEnd,
  type ShownOptions,
} from '../shown.ts'
import type { AgUiEnd, AgUiEvent, AgUiOwner, Interrupt } from './event.ts'

type Call = {
  readonly id: string
  readonly name: string
  readonly owner: AgUiOwner
  /** The arguments as they were streamed. */
  text: string
  /** Undefined while they are streamed. */
  args?: Json
  isFinished: boolean
}

/**
 * Translates the events of a session to events of AG-UI. A step is one assistant message, with its text and its calls. All ids
 * are made of the run, the step and the call, so they are unique in the conversation, and the same whenever it is read.
 */
export class AgUiMapper {
  /** How the run ended, if it has, or the questions of it that the user may answer. */
  end: AgUiEnd | undefined
  readonly #options: ShownOptions
  #run: string | undefined
  #step: number | undefined
  #block: 'text' | 'reasoning' | undefined
  readonly #written = new Set<'text' | 'reasoning'>()
  readonly #calls = new Map<string, Call>()
  /** Calls of subagents that were asked about, by path and id. */
  readonly #asked = new Map<string, Call>()
  #error: ErrorCode | undefined
  #out: AgUiEvent[] = []

  constructor(options: ShownOptions = {}) {
    this.#options = options
  }

  map(event: AgentEvent): readonly AgUiEvent[] {
    this.#out = []
    if (event.type === 'rewound') return []
    if (event.run !== this.#run) this.#startTurn(event.run)
    this.end = undefined
    if (event.type === 'subagent') this.#ofSubagent(event.path, event.event)
    else this.#own(event)
    return this.#out
  }

  /** What a stream that starts now must open first. */
  opened(): readonly AgUiEvent[] {
    this.#out = []
    if (this.#step !== undefined) this.#out.push({ type: 'STEP_STARTED', stepName: stepName(this.#step) })
    if (this.#block !== undefined) this.#startBlock(this.#block)
    for (const call of this.#calls.values()) if (call.args === undefined) this.#out.push(startOf(call))
    return this.#out
  }

  #startTurn(run: string): void {
    this.#run = run
    this.#step = undefined
    this.#block = undefined
    this.#error = undefined
    this.#written.clear()
    this.#calls.clear()
    this.#asked.clear()
  }

  #own(event: OwnEvent): void {
    switch (event.type) {
      case 'stepStarted':
        return this.#inStep(event.step)
      case 'stepFinished':
        return this.#closeStep()
      case 'text':
      case 'reasoning':
        return this.#write(event.type, event.delta, event.step)
      case 'toolCallDelta': {
        const call = this.#call({ id: event.callId, name: event.toolName }, event.step)
        if (call.args !== undefined || event.delta === '') return
        call.text += event.delta
        this.#out.push({ type: 'TOOL_CALL_ARGS', toolCallId: call.id, delta: event.delta })
        return
      }
      case 'retracted':
        return this.#retract(event.step)
      case 'responded':
        this.#inStep(event.step)
        // What was not streamed, and what replaces what was.
        if (!this.#written.has('reasoning')) this.#write('reasoning', event.reasoning ?? '', event.step)
        if (!this.#written.has('text')) this.#write('text', event.text, event.step)
        return this.#closeBlock()
      case 'asked':
        if (event.approval.trigger === undefined) this.#ask(event.approval, event.step)
        return
      case 'toolStarted':
        return this.#input(this.#call(event.call, event.step), event.call.args)
      case 'toolProgress': {
        const { id: toolCallId } = this.#calls.get(this.#callId(event.callId, event.step)) ?? {}
        if (toolCallId !== undefined) this.#custom('progress', { toolCallId, update: event.update })
        return
      }
      case 'toolFinished':
        return this.#finishCall(this.#call(event.call, event.step), event)
      case 'suspended':
        return this.#suspend(event.pending, event.step)
      case 'hook': {
        const decision = shownDecision(event.entry, this.#options)
        if (decision !== undefined) this.#custom('hook', decision)
        return
      }
      case 'error':
        this.#error = event.error.code
        return
      case 'finished':
        return this.#finish(event.record)
      default:
        return // the page shows nothing of it
    }
  }

  /** Only the calls of a subagent that were asked about are shown. The rest of it is the result of the call of its parent. */
  #ofSubagent(path: AgentPath, event: OwnEvent): void {
    if (event.type !== 'toolFinished') return
    const key = callKey(event.call.id, path)
    const call = this.#asked.get(key)
    if (call === undefined) return
    this.#asked.delete(key)
    this.#finishCall(call, event)
  }

  /** A step that waited for an answer is opened again by what continues it. */
  #inStep(step: number): void {
    if (this.#step === step) return
    this.#closeStep()
    this.#step = step
    this.#written.clear()
    this.#out.push({ type: 'STEP_STARTED', stepName: stepName(step) })
  }

  #closeStep(): void {
    this.#endResponse()
    if (this.#step !== undefined) this.#out.push({ type: 'STEP_FINISHED', stepName: stepName(this.#step) })
    this.#step = undefined
  }

  /** AG-UI ends nothing by itself. */
  #endResponse(): void {
    this.#closeBlock()
    for (const call of this.#calls.values()) this.#endInput(call)
  }

  #messageId(step: number): string {
    return `${this.#run}/${step}`
  }

  /** In the current step. */
  #blockId(type: 'text' | 'reasoning'): string {
    const messageId = this.#messageId(this.#step!)
    return type === 'text' ? messageId : `${messageId}/reasoning`
  }

  #write(type: 'text' | 'reasoning', delta: string, step: number): void {
    if (delta === '') return
    this.#inStep(step)
    if (this.#block !== type) {
      this.#closeBlock()
      this.#block = type
      this.#startBlock(type)
    }
    const kind = type === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT'
    this.#out.push({ type: kind, messageId: this.#blockId(type), delta })
    this.#written.add(type)
  }

  #startBlock(type: 'text' | 'reasoning'): void {
    const messageId = this.#blockId(type)
    if (type === 'text') this.#out.push({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' })
    else
      this.#out.push(
        { type: 'REASONING_START', messageId },
        { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' },
      )
  }

  #closeBlock(): void {
    if (this.#block === undefined) return
    const messageId = this.#blockId(this.#block)
    if (this.#block === 'text') this.#out.push({ type: 'TEXT_MESSAGE_END', messageId })
    else this.#out.push({ type: 'REASONING_MESSAGE_END', messageId }, { type: 'REASONING_END', messageId })
    this.#block = undefined
  }

  /** The next response of the step has the same ids. */
  #retract(step: number): void {
    this.#inStep(step)
    this.#endResponse()
    this.#custom('retracted', { messageIds: [this.#blockId('text'), this.#blockId('reasoning')] })
    for (const [id, { owner }] of this.#calls)
      if (owner.parentMessageId === this.#messageId(step)) this.#calls.delete(id)
    this.#written.clear()
  }

  #callId(id: string, step: number): string {
    return `${this.#messageId(step)}/${id}`
  }

  /** A call of the agent itself. */
  #call({ id, name }: Pick<ToolCall, 'id' | 'name'>, step: number): Call {
    this.#inStep(step)
    const toolCallId = this.#callId(id, step)
    return this.#calls.get(toolCallId) ?? this.#start(toolCallId, name, { parentMessageId: this.#messageId(step) })
  }

  #start(id: string, name: string, owner: AgUiOwner): Call {
    this.#closeBlock()
    const call: Call = { id, name, owner, text: '', isFinished: false }
    this.#calls.set(id, call)
    this.#out.push(startOf(call))
    return call
  }

  #endInput(call: Call): void {
    if (call.args !== undefined) return
    call.args = parsedArgs(call.text)
    this.#out.push({ type: 'TOOL_CALL_END', toolCallId: call.id })
  }

  /** The arguments: what was not streamed, and what an approver or a hook has changed. */
  #input(call: Call, args: Json): void {
    const { id: toolCallId } = call
    if (call.text === '' && call.args === undefined) {
      call.text = JSON.stringify(args)
      this.#out.push({ type: 'TOOL_CALL_ARGS', toolCallId, delta: call.text })
    }
    this.#endInput(call)
    if (sameJson(call.args!, args)) return
    call.args = args
    this.#custom('arguments', { toolCallId, args })
  }

  #finishCall(call: Call, { call: { args }, execution }: Extract<OwnEvent, { readonly type: 'toolFinished' }>): void {
    this.#input(call, args)
    this.#result(call, execution)
  }

  #result(call: Call, { status, output }: ToolExecution): void {
    const { id: toolCallId, name, owner } = call
    const content = textOfJson(output)
    const tag = owner.subagentRunId === undefined ? {} : { subagentRunId: owner.subagentRunId }
    call.isFinished = true
    const result = {
      messageId: `${toolCallId}/result`,
      toolCallId,
      role: 'tool',
      content,
      metadata: { status },
    } as const
    this.#out.push({ type: 'TOOL_CALL_RESULT', ...result, ...tag })
    if (status === 'blocked') this.#custom('blocked', { toolCallId, toolName: name, reason: content })
  }

  #ask({ toolCall, path }: Approval, step: number): Call {
    const call = path === undefined ? this.#call(toolCall, step) : this.#askedOf(path, toolCall)
    this.#input(call, toolCall.args)
    return call
  }

  #askedOf(path: AgentPath, { id, name }: ToolCall): Call {
    const key = callKey(id, path)
    const known = this.#asked.get(key)
    if (known !== undefined) return known
    const subagentRunId = `${this.#run}/${path.map(({ step, call }) => `${step}/${call}`).join('/')}`
    let unused = `${subagentRunId}/${id}`
    for (let i = 2; this.#calls.has(unused); i++) unused = `${subagentRunId}/${id}~${i}`
    const call = this.#start(unused, name, { subagentRunId })
    this.#asked.set(key, call)
    return call
  }

  #suspend(pending: readonly Approval[], step: number): void {
    const questions = pending.map((approval) => {
      const call = approval.trigger === undefined ? this.#ask(approval, step) : undefined
      return { interrupt: toInterrupt(approval, call), isOwn: this.#options.mayAnswer?.(approval) ?? true }
    })
    this.#closeStep()
    const interrupts = questions.flatMap(({ interrupt, isOwn }) => (isOwn ? [interrupt] : []))
    const others = questions.flatMap(({ interrupt, isOwn }) => (isOwn ? [] : [interrupt]))
    if (others.length > 0) this.#custom('waiting', others)
    if (interrupts.length > 0) this.end = { outcome: { type: 'interrupt', interrupts } }
  }

  #finish(record: FinalRecord): void {
    const { status } = record
    this.#endResponse()
    for (const call of this.#calls.values()) if (!call.isFinished) this.#result(call, neverRan)
    this.#closeStep()
    const code = this.#error === undefined ? {} : { code: this.#error }
    if (status === 'failed') this.end = { message: failureText(this.#error), ...code }
    else this.end = { outcome: { type: status === 'cancelled' ? status : 'success' }, result: shownEnd(record) }
  }

  #custom(name: string, value: Json): void {
    this.#out.push({ type: 'CUSTOM', name: `hookloop.${name}`, value })
  }
}

function startOf({ id, name, owner }: Call): AgUiEvent {
  return { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: name, ...owner }
}

function stepName(step: number): string {
  return `step ${step + 1}`
}

const answerProperties = { approved: { type: 'boolean' }, reason: { type: 'string' } } as const

function toInterrupt(approval: Approval, call: Call | undefined): Interrupt {
  const { id, message, toolCall, path, trigger, expiresAt, interruptions } = approval
  const isEditable = trigger === undefined && interruptions === undefined
  const editedArgs = isEditable ? { editedArgs: { type: 'object' } } : {}
  const metadata: JsonObject = {
    ...shownApproval(approval),
    toolCall: { name: toolCall.name, args: toolCall.args },
    ...(path !== undefined && { agents: path.map(({ agent }) => agent) }),
  }
  return {
    id,
    message,
    reason: trigger === undefined ? 'tool_call' : 'confirmation',
    ...(call !== undefined && { toolCallId: call.id }),
    ...(call?.owner.subagentRunId !== undefined && { subagentRunId: call.owner.subagentRunId }),
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
    responseSchema: {
      type: 'object',
      properties: { ...answerProperties, ...editedArgs },
      required: ['approved'],
    },
    metadata,
  }
}
