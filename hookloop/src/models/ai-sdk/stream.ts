import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { InferenceDelta } from '../../data/inference.ts'
import { AgentError } from '../../errors.ts'
import type { Deadline } from './deadline.ts'
import type { Answer, AnswerPart } from './reply.ts'
import type { ToolNames } from './tool-names.ts'

type Reading = {
  readonly deadline: Deadline
  readonly onDelta: (delta: InferenceDelta) => void
  readonly names: ToolNames
}

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
  try {
    for (;;) {
      const { done, value } = await deadline.within(reader.read())
      if (done) break
      deadline.touch()
      pieces.take(value)
    }
    return pieces.whole()
  } catch (thrown) {
    reader.cancel(thrown).catch(() => undefined) // closes the connection, whatever went wrong
    throw thrown
  }
}

type OpenText = { type: 'text' | 'reasoning'; text: string; providerMetadata?: unknown }

/** What was streamed so far, in the order in which its parts began. */
class Pieces {
  readonly #onDelta: (delta: InferenceDelta) => void
  readonly #names: ToolNames
  readonly #content: (AnswerPart | OpenText)[] = []
  readonly #texts = new Map<string, OpenText>()
  readonly #calls = new Map<string, string>()
  readonly #warnings: unknown[] = []
  #modelId: string | undefined
  #finish: Pick<Answer, 'finishReason' | 'usage'> | undefined

  constructor(onDelta: (delta: InferenceDelta) => void, names: ToolNames) {
    this.#onDelta = onDelta
    this.#names = names
  }

  take(part: LanguageModelV4StreamPart): void {
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
        this.#open(part.type === 'text-start' ? 'text' : 'reasoning', part.id, part.providerMetadata)
        return
      case 'text-delta':
      case 'reasoning-delta':
        return this.#write(part.type === 'text-delta' ? 'text' : 'reasoning', part)
      case 'text-end':
      case 'reasoning-end':
        return this.#remember(part.id, part.providerMetadata)
      case 'tool-input-start':
        if (part.providerExecuted !== true) this.#calls.set(part.id, this.#names.own(part.toolName))
        return
      case 'tool-input-delta':
        return this.#writeCall(part.id, part.delta)
      case 'tool-call':
        if (!this.#calls.has(part.toolCallId) && part.providerExecuted !== true) {
          this.#calls.set(part.toolCallId, this.#names.own(part.toolName)) // not every provider streams arguments
          this.#writeCall(part.toolCallId, part.input)
        }
        this.#content.push(part)
        return
      case 'stream-start':
        this.#warnings.push(...part.warnings)
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
        this.#content.push(part)
    }
  }

  whole(): Answer {
    const finish = this.#finish
    if (finish === undefined || isUnfinished(finish.finishReason)) {
      throw new AgentError('MODEL_UNREACHABLE', 'The stream ended before the model had finished.')
    }
    const response = this.#modelId === undefined ? {} : { response: { modelId: this.#modelId } }
    return { ...finish, content: this.#content as AnswerPart[], warnings: this.#warnings, ...response }
  }

  #open(type: OpenText['type'], id: string, providerMetadata: unknown): OpenText {
    const text: OpenText = { type, text: '', ...(providerMetadata !== undefined && { providerMetadata }) }
    this.#texts.set(id, text)
    this.#content.push(text)
    return text
  }

  #write(
    type: OpenText['type'],
    { id, delta, providerMetadata }: { id: string; delta: string; providerMetadata?: unknown },
  ): void {
    const text = this.#texts.get(id) ?? this.#open(type, id, undefined)
    text.text += delta
    if (providerMetadata !== undefined) text.providerMetadata = providerMetadata
    if (delta !== '') this.#onDelta({ type, delta })
  }

  #writeCall(callId: string, delta: string): void {
    const toolName = this.#calls.get(callId)
    if (toolName !== undefined && delta !== '') this.#onDelta({ type: 'toolCallDelta', callId, toolName, delta })
  }

  /** A part is over. Its signature, if it has one, comes with its end. */
  #remember(id: string, providerMetadata: unknown): void {
    const text = this.#texts.get(id)
    if (text !== undefined && providerMetadata !== undefined) text.providerMetadata = providerMetadata
    this.#texts.delete(id) // ids may be used again
  }
}

/** Adapters end every stream with a reason; one that the provider did not give means that it did not get to the end. */
function isUnfinished(reason: Answer['finishReason']): boolean {
  if (typeof reason === 'string') return reason === 'unknown'
  return reason.unified === 'other' && reason.raw === undefined
}
