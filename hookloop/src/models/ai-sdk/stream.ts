import { setImmediate as soon } from 'node:timers/promises'
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { InferenceDelta } from '../../state/inference.ts'
import { AgentError } from '../../errors.ts'
import type { CallDeadline } from './call-deadline.ts'
import type { Answer, AnswerPart } from './reply.ts'
import type { ToolNames } from './tool-names.ts'

type Reading = {
  readonly deadline: CallDeadline
  readonly onDelta: (delta: InferenceDelta) => void
  readonly names: ToolNames
}

/** More than this is no answer that could be kept, see `toJson`; a stream without end must not take all memory. */
const MAX_CHARACTERS = 64 * 1024 * 1024
const MAX_PARTS = 4_000_000
/** A stream that is always ready would keep timers and signals from being heard. */
const BREATH = 1_000

/**
 * Reads a stream to its end, tells every piece, and puts the pieces together to what `doGenerate` would have given.
 * A stream that ends before the model has said why it ended was cut off.
 */
export async function readStream(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  { deadline, onDelta, names }: Reading,
): Promise<Answer> {
  const reader = stream.getReader()
  const pieces = new Pieces(onDelta, names)
  // Closes the connection and ends a read under way, also of a stream that does not heed the signal.
  const close = (): void => void cancel(reader, deadline.signal.reason)
  deadline.signal.addEventListener('abort', close, { once: true })
  if (deadline.signal.aborted) close()
  try {
    for (let count = 1; ; count++) {
      const { done, value } = await reader.read()
      deadline.signal.throwIfAborted()
      if (done) return pieces.whole()
      if (count > MAX_PARTS) throw tooLong()
      deadline.touch()
      pieces.take(value)
      if (count % BREATH === 0) await soon()
    }
  } catch (thrown) {
    close()
    throw thrown
  } finally {
    deadline.signal.removeEventListener('abort', close)
  }
}

/** Gives a stream up. Whatever its end has to say about that, nobody asked. */
export async function cancel(stream: Pick<ReadableStream, 'cancel'> | undefined, reason: unknown): Promise<void> {
  try {
    await stream?.cancel(reason)
  } catch {
    // it is given up all the same
  }
}

function tooLong(): AgentError {
  return new AgentError('MODEL_REPLY_INVALID', 'The answer is longer than 64 Mi characters, or in too many pieces.')
}

type OpenText = { type: 'text' | 'reasoning'; text: string; providerMetadata?: unknown }

/** A place in the answer. A call takes its place when it begins, and is there when it is whole. */
type Slot = { part?: AnswerPart | OpenText }

/** What was streamed so far, in the order in which its parts began. */
class Pieces {
  readonly #onDelta: (delta: InferenceDelta) => void
  readonly #names: ToolNames
  readonly #slots: Slot[] = []
  /** By type and id: a text and a thought may go by the same one. */
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

  take(part: LanguageModelV4StreamPart): void {
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

  whole(): Answer {
    const finish = this.#finish
    if (finish === undefined || isUnfinished(finish.finishReason)) {
      throw new AgentError('MODEL_UNREACHABLE', 'The stream ended before the model had finished.')
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

  /** A part is over. Its signature, if it has one, comes with its end. */
  #close(type: OpenText['type'], { id, providerMetadata }: { id: string; providerMetadata?: unknown }): void {
    const text = this.#texts.get(`${type} ${id}`)
    if (text !== undefined && providerMetadata !== undefined) text.providerMetadata = providerMetadata
    this.#texts.delete(`${type} ${id}`) // ids may be used again
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
    const begun = this.#calls.get(part.toolCallId)?.slot
    const slot = begun ?? this.#openCall(part.toolCallId, part.toolName)
    // Not every provider streams arguments.
    if (begun === undefined && typeof part.input === 'string') this.#writeCall(part.toolCallId, part.input)
    if (slot.part === undefined) slot.part = part
    else this.#slots.push({ part }) // another call by the same id
  }

  #count(delta: unknown): void {
    if (typeof delta !== 'string') throw new AgentError('MODEL_REPLY_INVALID', 'A piece of the answer is no text.')
    this.#characters += delta.length
    if (this.#characters > MAX_CHARACTERS) throw tooLong()
  }
}

/** Adapters end every stream with a reason; one that the provider did not give means that it did not get to the end. */
function isUnfinished(reason: Answer['finishReason']): boolean {
  if (typeof reason !== 'object') return reason === 'unknown'
  return reason.unified === 'interrupted' || (reason.unified === 'other' && reason.raw === undefined)
}
