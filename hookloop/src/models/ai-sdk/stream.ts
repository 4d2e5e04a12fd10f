import { setImmediate as soon } from 'node:timers/promises'
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { InferenceDelta } from '../../core/state/inference.ts'
import { AgentError } from '../../errors.ts'
import type { CallDeadline } from './call-deadline.ts'
import type { Answer, AnswerPart } from './reply.ts'
import type { ToolNames } from './tool-names.ts'

type Reading = {
  readonly deadline: CallDeadline
  readonly onDelta: (delta: InferenceDelta) => void
  readonly names: ToolNames
}

/** The limit of `toJson`. An endless stream must not use up all memory. */
const MAX_CHARACTERS = 64 * 1024 * 1024
const MAX_PARTS = 4_000_000
/** A stream that always has data would starve timers and signals, so the event loop gets a turn this often. */
const PARTS_PER_TURN = 1_000

/**
 * Reads a stream to its end, reports every delta, and assembles the reply that `doGenerate` would have returned. A stream
 * that ends without a finish reason was cut off, and throws.
 */
export async function readStream(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  { deadline, onDelta, names }: Reading,
): Promise<Answer> {
  const reader = stream.getReader()
  const reply = new StreamedReply(onDelta, names)
  // Closes the connection and ends a pending read, even if the stream ignores the signal.
  const close = (): void => void cancel(reader, deadline.signal.reason)
  deadline.signal.addEventListener('abort', close, { once: true })
  if (deadline.signal.aborted) close()
  try {
    for (let count = 1; ; count++) {
      const { done, value } = await reader.read()
      deadline.signal.throwIfAborted()
      if (done) return reply.complete()
      if (count > MAX_PARTS) throw tooLong()
      deadline.touch()
      reply.add(value)
      if (count % PARTS_PER_TURN === 0) await soon()
    }
  } catch (thrown) {
    close()
    throw thrown
  } finally {
    deadline.signal.removeEventListener('abort', close)
  }
}

/** Cancels a stream and ignores errors of doing so. */
export async function cancel(stream: Pick<ReadableStream, 'cancel'> | undefined, reason: unknown): Promise<void> {
  try {
    await stream?.cancel(reason)
  } catch {
    // the stream is not used any more
  }
}

function tooLong(): AgentError {
  return new AgentError('MODEL_REPLY_INVALID', 'The reply is longer than 64 Mi characters, or has too many parts.')
}

type OpenText = { type: 'text' | 'reasoning'; text: string; providerMetadata?: unknown }

/** A position in the reply. A call reserves it when it starts and fills it when it is complete. */
type Slot = { part?: AnswerPart | OpenText }

/** What was streamed so far, in the order in which the parts started. */
class StreamedReply {
  readonly #onDelta: (delta: InferenceDelta) => void
  readonly #names: ToolNames
  readonly #slots: Slot[] = []
  /** By type and id: a text and a reasoning part may have the same id. */
  readonly #texts = new Map<string, OpenText>()
  readonly #calls = new Map<string, { readonly toolName: string; readonly slot: Slot }>()
  readonly #warnings: unknown[] = []
  #modelId: string | undefined
  #finish: Pick<Answer, 'finishReason' | 'usage'> | undefined
  #characters = 0

  constructor(onDelta: (delta: InferenceDelta) => void, names: ToolNames) {
    this.#onDelta = onDelta
    this.#names = names
  }

  add(part: LanguageModelV4StreamPart): void {
    switch (part.type) {
      case 'text-start':
        this.#open('text', part)
        return
      case 'reasoning-start':
        this.#open('reasoning', part)
        return
      case 'text-delta':
        return this.#write('text', part)
      case 'reasoning-delta':
        return this.#write('reasoning', part)
      case 'text-end':
        return this.#close('text', part)
      case 'reasoning-end':
        return this.#close('reasoning', part)
      case 'tool-input-start':
        if (part.providerExecuted !== true) this.#openCall(part.id, part.toolName)
        return
      case 'tool-input-delta':
        return this.#writeCall(part.id, part.delta)
      case 'tool-call':
        return this.#takeCall(part)
      case 'stream-start':
        for (const warning of part.warnings ?? []) this.#warnings.push(warning)
        return
      case 'response-metadata':
        this.#modelId = part.modelId ?? this.#modelId
        return
      case 'finish':
        this.#finish = part
        return
      case 'error':
        throw part.error
      case 'tool-input-end':
      case 'ping':
      case 'raw':
        return
      default:
        this.#slots.push({ part })
    }
  }

  complete(): Answer {
    const finish = this.#finish
    if (finish === undefined || isUnfinished(finish.finishReason)) {
      throw new AgentError('MODEL_UNREACHABLE', 'The stream ended before the reply was complete.')
    }
    const content = this.#slots.flatMap(({ part }) => (part === undefined ? [] : [part as AnswerPart]))
    const response = this.#modelId === undefined ? {} : { response: { modelId: this.#modelId } }
    return { ...finish, content, warnings: this.#warnings, ...response }
  }

  #open(type: OpenText['type'], { id, providerMetadata }: { id: string; providerMetadata?: unknown }): OpenText {
    const text: OpenText = { type, text: '', ...(providerMetadata !== undefined && { providerMetadata }) }
    this.#texts.set(`${type} ${id}`, text)
    this.#slots.push({ part: text })
    return text
  }

  #write(type: OpenText['type'], part: { id: string; delta: string; providerMetadata?: unknown }): void {
    this.#count(part.delta)
    const text = this.#texts.get(`${type} ${part.id}`) ?? this.#open(type, { id: part.id })
    text.text += part.delta
    if (part.providerMetadata !== undefined) text.providerMetadata = part.providerMetadata
    if (part.delta !== '') this.#onDelta({ type, delta: part.delta })
  }

  /** Ends a part. Its signature, if there is one, comes with its end. */
  #close(type: OpenText['type'], { id, providerMetadata }: { id: string; providerMetadata?: unknown }): void {
    const text = this.#texts.get(`${type} ${id}`)
    if (text !== undefined && providerMetadata !== undefined) text.providerMetadata = providerMetadata
    this.#texts.delete(`${type} ${id}`) // ids may be reused
  }

  #openCall(id: string, sentName: string): Slot {
    const slot: Slot = {}
    this.#calls.set(id, { toolName: this.#names.own(sentName), slot })
    this.#slots.push(slot)
    return slot
  }

  #writeCall(callId: string, delta: string): void {
    this.#count(delta)
    const toolName = this.#calls.get(callId)?.toolName
    if (toolName !== undefined && delta !== '') this.#onDelta({ type: 'toolCallDelta', callId, toolName, delta })
  }

  #takeCall(part: Extract<AnswerPart, { type: 'tool-call' }>): void {
    if (part.providerExecuted === true) return void this.#slots.push({ part })
    const started = this.#calls.get(part.toolCallId)?.slot
    const slot = started ?? this.#openCall(part.toolCallId, part.toolName)
    // Not every provider streams arguments, so they are reported as one delta.
    if (started === undefined && typeof part.input === 'string') this.#writeCall(part.toolCallId, part.input)
    if (slot.part === undefined) slot.part = part
    else this.#slots.push({ part }) // another call with the same id
  }

  #count(delta: unknown): void {
    if (typeof delta !== 'string') throw new AgentError('MODEL_REPLY_INVALID', 'A delta of the reply is not a string.')
    this.#characters += delta.length
    if (this.#characters > MAX_CHARACTERS) throw tooLong()
  }
}

/** Adapters end every stream with a reason. One that the provider did not send means that the stream was cut off. */
function isUnfinished(reason: Answer['finishReason']): boolean {
  if (typeof reason !== 'object') return reason === 'unknown'
  return reason.unified === 'interrupted' || (reason.unified === 'other' && reason.raw === undefined)
}
