import { sameJson, textOfJson, type Json } from '../../values/json.ts'
import type { AgentPath, Answer } from '../../plugin.ts'
import type { Approval, ToolCall, ToolExecution } from '../../index.ts'
import { callKey, parsedArgs, shownApproval } from '../shown.ts'
import type { UiChunk } from './ui-chunk.ts'

type Named = Pick<ToolCall, 'id' | 'name'>

/** The calls of one turn as a page shows them: each is a tool part of the message. */
export class UiCalls {
  /** By path and id. A model may use an id again in a later step. */
  readonly #calls = new Map<string, UiCall>()
  /** By approval. */
  readonly #asked = new Map<string, UiCall>()
  readonly #ids = new Set<string>()
  #part = 0

  /** A step of the message starts. Later chunks cannot change the arguments of calls before it. */
  startStep(): readonly UiChunk[] {
    const chunks = this.open().flatMap((call) => call.endInput())
    this.#part++
    return [...chunks, { type: 'start-step' }]
  }

  /** A call of the agent itself. */
  ofAgent({ id, name }: Named, step: number): UiCall {
    const known = this.#calls.get(id)
    return known?.step === step ? known : this.#add(id, this.#create(id, { id, name, step }))
  }

  find(id: string, path?: AgentPath): UiCall | undefined {
    return this.#calls.get(callKey(id, path))
  }

  /** A part for a question only. If it is about a call of the agent itself, that has a part already: both get the result. */
  question({ toolCall, path = [] }: Approval, isOwn: boolean): UiCall {
    const { id, name } = toolCall
    const prefix = path.length === 0 ? 'question' : path.map(({ call }) => call).join('/')
    const question = this.#create(`${prefix}/${id}`, { id, name, step: -1 })
    const shown = isOwn ? this.#calls.get(id) : undefined
    if (shown !== undefined) shown.also = question
    else this.#add(callKey(id, path), question)
    return question
  }

  ask(call: UiCall, approval: Approval, mayAnswer: boolean): readonly UiChunk[] {
    this.#asked.set(approval.id, call)
    return call.ask(approval, mayAnswer)
  }

  /** The call that a question is shown with. */
  asked(approval: string): UiCall | undefined {
    return this.#asked.get(approval)
  }

  open(): readonly UiCall[] {
    return [...this.#calls.values()].filter(({ isOpen }) => isOpen)
  }

  /** Forgets the calls of a response that was discarded. */
  retract(step: number): void {
    for (const [key, call] of this.#calls) {
      if (call.step !== step) continue
      this.#calls.delete(key)
      this.#ids.delete(call.uiId)
    }
  }

  #add(key: string, call: UiCall): UiCall {
    this.#calls.set(key, call)
    return call
  }

  #create(id: string, about: Named & { readonly step: number }): UiCall {
    let unused = id
    for (let i = 2; this.#ids.has(unused); i++) unused = `${id}~${i}`
    this.#ids.add(unused)
    const part = this.#part
    return new UiCall(unused, { ...about, isCurrent: () => part === this.#part })
  }
}

/** One tool part of a message. */
export class UiCall {
  readonly id: string
  /** The id on the page. */
  readonly uiId: string
  readonly step: number
  isOpen = false
  /** A second part, with the question about this call. */
  also: UiCall | undefined
  readonly #name: string
  readonly #isCurrent: () => boolean
  /** The arguments as text, while they are streamed. */
  #text: string | undefined
  #input: Json | undefined
  #approval: { readonly id: string; approved?: boolean; readonly isOfTrigger: boolean } | undefined

  constructor(
    uiId: string,
    { id, name, step, isCurrent }: Named & { readonly step: number; readonly isCurrent: () => boolean },
  ) {
    this.uiId = uiId
    this.#isCurrent = isCurrent
    this.id = id
    this.step = step
    this.#name = name
  }

  inputDelta(inputTextDelta: string): readonly UiChunk[] {
    const toolCallId = this.uiId
    const start: readonly UiChunk[] =
      this.#text === undefined ? [{ type: 'tool-input-start', toolCallId, toolName: this.#name }] : []
    this.#text = `${this.#text ?? ''}${inputTextDelta}`
    this.isOpen = true
    return inputTextDelta === '' ? start : [...start, { type: 'tool-input-delta', toolCallId, inputTextDelta }]
  }

  /** The arguments: once, and again if an approver or a hook has changed them. */
  input(input: Json, title?: string): readonly UiChunk[] {
    if (this.#input !== undefined && (sameJson(this.#input, input) || !this.#isCurrent())) return []
    this.#input = input
    this.isOpen = true
    const named = { toolCallId: this.uiId, toolName: this.#name, input }
    return [{ type: 'tool-input-available', ...named, ...(title !== undefined && { title }) }]
  }

  /** The arguments that were streamed, if nothing else has ended them. */
  endInput(): readonly UiChunk[] {
    if (this.#input !== undefined || this.#text === undefined) return []
    return this.input(parsedArgs(this.#text))
  }

  progress(output: Json): readonly UiChunk[] {
    return [{ type: 'tool-output-available', toolCallId: this.uiId, output, preliminary: true }]
  }

  ask(approval: Approval, mayAnswer: boolean): readonly UiChunk[] {
    const { id, message, trigger, expiresAt } = approval
    this.#approval = { id, isOfTrigger: trigger !== undefined }
    const until = expiresAt === undefined ? {} : { expiresAt }
    const asked = { approvalId: id, toolCallId: this.uiId, reason: message }
    const approvalDescriptor = { ...shownApproval(approval), mayAnswer, ...until }
    return [{ type: 'tool-approval-request', ...asked, approvalDescriptor }]
  }

  answer(approvalId: string, answer: Answer): readonly UiChunk[] {
    const asked = this.#approval
    if (asked === undefined || asked.id !== approvalId || asked.approved !== undefined) return []
    const isDenied = typeof answer === 'object' && 'block' in answer
    asked.approved = !isDenied
    const reason = isDenied ? { reason: answer.block } : {}
    const response: UiChunk = { type: 'tool-approval-response', approvalId, approved: !isDenied, ...reason }
    if (!asked.isOfTrigger) return [response]
    // No call follows that would end the part.
    return [response, ...this.finish(isDenied ? { status: 'blocked', output: answer.block } : allowed)]
  }

  finish(execution: ToolExecution): readonly UiChunk[] {
    this.isOpen = false
    const toolCallId = this.uiId
    const others = this.also?.finish(execution) ?? []
    switch (execution.status) {
      case 'ok':
        return [{ type: 'tool-output-available', toolCallId, output: execution.output }, ...others]
      case 'blocked':
        return [...this.#denial(textOfJson(execution.output)), { type: 'tool-output-denied', toolCallId }, ...others]
      case 'failed':
      case 'outcomeUnknown':
        return [{ type: 'tool-output-error', toolCallId, errorText: textOfJson(execution.output) }, ...others]
      default:
        return execution.status satisfies never
    }
  }

  /** A guard has blocked the call without an approver, or although an approver has allowed it. */
  #denial(reason: string): readonly UiChunk[] {
    if (this.#approval?.approved === false) return []
    const approvalId = `${this.uiId}/blocked`
    return [
      { type: 'tool-approval-request', approvalId, toolCallId: this.uiId, reason, isAutomatic: true },
      { type: 'tool-approval-response', approvalId, approved: false, reason },
    ]
  }
}

const allowed: ToolExecution = Object.freeze({ status: 'ok', output: 'Allowed.' })
