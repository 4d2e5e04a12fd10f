import type { AgentEvent, AgentPath, Answer, FinishReason, OwnEvent } from '../../plugin.ts'
import type { Approval, FinalRecord } from '../../index.ts'
import type { ErrorCode } from '../../errors.ts'
import { failureText, neverRan, shownDecision, shownEnd, type ShownOptions } from '../shown.ts'
import { UiCalls, type UiCall } from './ui-calls.ts'
import type { UiChunk, UiFinishReason } from './ui-chunk.ts'

/**
 * Translates the events of a session to chunks of the UI message stream of the AI SDK. One turn is one message, whose id is that
 * of the run, also after a question was answered. The same events lead to the same chunks, so a stream can continue at any chunk.
 */
export class ChunkMapper {
  readonly #options: ShownOptions
  #run: string | undefined
  #calls = new UiCalls()
  #block: { readonly type: 'text' | 'reasoning'; readonly id: string } | undefined
  /** What was sent of the current response. */
  readonly #written = new Set<'text' | 'reasoning'>()
  /** The step in progress. */
  #step: number | undefined
  /** Whether the current step of the message is one with questions only. */
  #isAsking = false
  #finishReason: FinishReason = 'other'
  #error: ErrorCode | undefined
  #out: UiChunk[] = []

  constructor(options: ShownOptions = {}) {
    this.#options = options
  }

  map(event: AgentEvent): readonly UiChunk[] {
    this.#out = []
    if (event.type === 'rewound') return []
    const isNew = event.run !== this.#run
    if (isNew) this.#startTurn(event.run)
    if (isNew || event.type === 'resumed') this.#out.push({ type: 'start', messageId: event.run })
    if (event.type === 'subagent') this.#ofSubagent(event.path, event.event)
    else this.#own(event, String(event.seq))
    return this.#out
  }

  #startTurn(run: string): void {
    this.#run = run
    this.#calls = new UiCalls()
    this.#block = undefined
    this.#error = undefined
    this.#finishReason = 'other'
    this.#written.clear()
    this.#step = undefined
    this.#isAsking = false
  }

  /** The start of a step is not kept as long as what happens in it. */
  #inStep(step: number): void {
    if (this.#step === step) return
    this.#step = step
    this.#written.clear()
    this.#isAsking = false
    this.#out.push(...this.#calls.startStep())
  }

  #own(event: OwnEvent, id: string): void {
    switch (event.type) {
      case 'stepStarted':
        return this.#inStep(event.step)
      case 'stepFinished':
        this.#step = undefined
        this.#closeBlock()
        this.#finishReason = event.finishReason
        this.#out.push({ type: 'finish-step' })
        return
      case 'text':
      case 'reasoning':
        return this.#write(event.type, event.delta, id)
      case 'toolCallDelta': {
        this.#closeBlock()
        const call = this.#calls.ofAgent({ id: event.callId, name: event.toolName }, event.step)
        this.#out.push(...call.inputDelta(event.delta))
        return
      }
      case 'retracted':
        this.#block = undefined
        this.#written.clear()
        this.#calls.retract(event.step)
        this.#out.push({ type: 'reset-step' })
        return
      case 'responded':
        this.#inStep(event.step)
        // What was not streamed, and what replaces what was.
        if (!this.#written.has('reasoning')) this.#write('reasoning', event.reasoning ?? '', `${id}r`)
        if (!this.#written.has('text')) this.#write('text', event.text, id)
        return this.#closeBlock()
      case 'asked':
      case 'toolStarted': {
        if (event.type === 'asked' && event.approval.trigger !== undefined) return
        const call = event.type === 'asked' ? event.approval.toolCall : event.call
        this.#out.push(...this.#calls.ofAgent(call, event.step).input(call.args))
        return
      }
      case 'toolProgress':
        this.#out.push(...(this.#calls.find(event.callId)?.progress(event.update) ?? []))
        return
      case 'toolFinished':
        return this.#finishCall(this.#calls.ofAgent(event.call, event.step), event)
      case 'suspended':
        return this.#suspend(event.pending, event.step)
      case 'answered':
        return this.#answer(event.approval, event.answer)
      case 'hook': {
        const data = shownDecision(event.entry, this.#options)
        if (data !== undefined) this.#out.push({ type: 'data-hook', data, transient: true })
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

  /** Only the questions of a subagent are shown, and how they end. The rest of it is the result of the call of its parent. */
  #ofSubagent(path: AgentPath, event: OwnEvent): void {
    if (event.type !== 'toolFinished') return
    const asked = this.#calls.find(event.call.id, path)
    if (asked !== undefined) this.#finishCall(asked, event)
  }

  #finishCall(call: UiCall, { call: { args }, execution }: Extract<OwnEvent, { readonly type: 'toolFinished' }>): void {
    this.#out.push(...call.input(args), ...call.finish(execution))
  }

  #write(type: 'text' | 'reasoning', delta: string, id: string): void {
    if (delta === '') return
    if (this.#block?.type !== type) {
      this.#closeBlock()
      this.#block = { type, id }
      this.#out.push({ type: `${type}-start`, id })
    }
    this.#out.push({ type: `${type}-delta`, id: this.#block.id, delta })
    this.#written.add(type)
  }

  #closeBlock(): void {
    if (this.#block === undefined) return
    const { type, id } = this.#block
    this.#block = undefined
    this.#out.push({ type: `${type}-end`, id })
  }

  /**
   * A page sends answers when every call in the last step of the message has ended or was answered. So if another call is
   * open, such as that of a subagent that asks, all questions are in a step of their own.
   */
  #suspend(pending: readonly Approval[], step: number): void {
    this.#closeBlock()
    const isOwn = ({ path, trigger }: Approval): boolean => path === undefined && trigger === undefined
    const ids = new Set(pending.map(({ toolCall }) => toolCall.id))
    const isAlone = !this.#isAsking && pending.every(isOwn) && this.#calls.open().every(({ id }) => ids.has(id))
    for (const approval of pending) {
      if (this.#calls.asked(approval.id) !== undefined) continue
      if (!isAlone && !this.#isAsking) {
        this.#isAsking = true
        this.#out.push(...this.#calls.startStep())
      }
      const { toolCall, path } = approval
      const call = isAlone ? this.#calls.ofAgent(toolCall, step) : this.#calls.question(approval, isOwn(approval))
      const title = path && [...path.map(({ agent }) => agent), toolCall.name].join(' › ')
      this.#out.push(
        ...call.input(toolCall.args, title),
        ...this.#calls.ask(call, approval, this.#options.mayAnswer?.(approval) ?? true),
      )
    }
    this.#out.push({ type: 'finish', finishReason: 'tool-calls', messageMetadata: { status: 'suspended' } })
  }

  #answer(approval: string, answer: Answer): void {
    this.#out.push(...(this.#calls.asked(approval)?.answer(approval, answer) ?? []))
  }

  #finish(record: FinalRecord): void {
    const { status, message } = record
    this.#closeBlock()
    for (const call of this.#calls.open()) this.#out.push(...call.finish(neverRan))
    if (status === 'cancelled') this.#out.push({ type: 'abort', reason: message })
    const messageMetadata = shownEnd(record)
    if (status === 'failed') {
      this.#out.push({ type: 'message-metadata', messageMetadata })
      this.#out.push({ type: 'error', errorText: failureText(this.#error) })
    }
    const finishReason = status === 'completed' ? toFinishReason(this.#finishReason) : 'other'
    this.#out.push({ type: 'finish', finishReason, messageMetadata })
  }
}

function toFinishReason(reason: FinishReason): UiFinishReason {
  return reason === 'withheld' ? 'content-filter' : reason
}
