import { createAgent, guards, tool, type LanguageModel, type ModelReply } from 'hookloop'
import { round, sideBySide, type Measurement } from '../measurement.ts'

const CALLS = 100

export const measurement: Measurement = {
  about: 'one step with 100 calls of a tool that takes 1 ms',
  rows: {
    msOf100Tools: { label: 'ms for 100 calls of 1 ms at once', goal: 1.7 },
    bareMsOf100Tools: { label: '  the same with Promise.all' },
  },
  async measure() {
    const wait = tool({
      name: 'wait',
      description: 'Waits.',
      input: { type: 'object' },
      concurrent: true,
      execute: oneMs,
    })
    const limits = guards({ maxTokens: null, maxTimeMs: null })
    const agent = createAgent({ model: callingModel(), maxConcurrentTools: CALLS, use: [wait, limits] })
    const sides = [() => agent.run('go'), () => Promise.all(Array.from({ length: CALLS }, oneMs))]
    await sideBySide(20, 1000, sides)
    const [own, bare] = await sideBySide(100, 1000, sides)
    return { msOf100Tools: round(own!.fast), bareMsOf100Tools: round(bare!.fast) }
  },
}

function oneMs(): Promise<string> {
  return new Promise((resolve) => setTimeout(resolve, 1, 'done'))
}

function callingModel(): LanguageModel {
  const usage = { inputTokens: 1, outputTokens: 1 }
  const done: ModelReply = { content: [{ type: 'text', text: 'done' }], finishReason: 'stop', usage }
  const calls: ModelReply = {
    content: Array.from({ length: CALLS }, (_, i) => ({
      type: 'tool-call',
      toolCallId: `c${i}`,
      toolName: 'wait',
      input: {},
    })),
    finishReason: 'tool-calls',
    usage,
  }
  return {
    provider: 'bench',
    modelId: 'calling',
    infer: async ({ messages }) => (messages.length === 1 ? calls : done),
  }
}
