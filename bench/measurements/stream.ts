import { createAgent, guards, type Agent, type AiSdkModel } from 'hookloop'
import { round, sideBySide, type Measurement } from '../measurement.ts'

// One answer in many chunks, from a model of the AI SDK that has them ready: this measures the path of a chunk to the
// reader, not the network.

const CHUNKS = 5_000

export const measurement: Measurement = {
  about: 'an answer in 5,000 chunks',
  rows: {
    usPerStreamedChunkOverBare: { label: 'µs added per streamed chunk' },
    bareUsPerStreamedChunk: { label: '  reading the stream alone' },
  },
  async measure() {
    const agent = streamingAgent()
    const sides = [() => readEvents(agent), readBare]
    await sideBySide(10, CHUNKS, sides)
    const [own, bare] = await sideBySide(60, CHUNKS, sides)
    return {
      usPerStreamedChunk: round(own!.fast),
      bareUsPerStreamedChunk: round(bare!.fast),
      usPerStreamedChunkOverBare: round(own!.fast - bare!.fast),
      median: { usPerStreamedChunkOverBare: round(own!.median - bare!.median) },
    }
  },
}

const parts: readonly object[] = [
  { type: 'stream-start', warnings: [] },
  { type: 'text-start', id: '1' },
  ...Array.from({ length: CHUNKS }, (_, i) => ({ type: 'text-delta', id: '1', delta: `word ${i} ` })),
  { type: 'text-end', id: '1' },
  {
    type: 'finish',
    finishReason: { unified: 'stop', raw: 'stop' },
    usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
  },
]

const model: AiSdkModel = {
  specificationVersion: 'v4',
  provider: 'bench',
  modelId: 'streaming',
  doGenerate: () => Promise.reject(new Error('only streams')),
  doStream: async () => ({ stream: ReadableStream.from(parts) }),
}

function streamingAgent(): Agent {
  return createAgent({ model, use: [guards({ maxTokens: null, maxTimeMs: null })] })
}

/** Reads the run as events, as an application would. */
async function readEvents(agent: Agent): Promise<number> {
  let length = 0
  for await (const event of agent.stream('go')) if (event.type === 'text') length += event.delta.length
  return length
}

/** The hand-written equivalent: read the stream, concatenate the text. */
async function readBare(): Promise<number> {
  const { stream } = (await model.doStream(undefined as never)) as { stream: ReadableStream<{ delta?: string }> }
  const reader = stream.getReader()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text.length
    text += value.delta ?? ''
  }
}
