// The same agent with any model: `examples/16-real-models.ts ollama/llama3.2` or `… anthropic/claude-sonnet-5-5`.
// Without a name it uses three local stand-ins that implement the AI SDK interface.
import { createAgent, explain, tool, type AiSdkModel, type ModelSource } from 'hookloop'
import * as z from 'zod'

const weather = tool({
  name: 'weather',
  description: 'The weather in a city.',
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `${city}: 14 degrees, light rain`,
})

const [named] = process.argv.slice(2)
const models: readonly ModelSource[] =
  named === undefined
    ? [
        standIn('anthropic.messages', 'claude-sonnet-5-5'),
        standIn('openai.responses', 'gpt-6-luna'),
        standIn('google.generative-ai', 'gemini-3.5-flash-lite'),
      ]
    : [named]

for (const model of models) {
  const agent = createAgent({ model, use: [weather], settings: { maxOutputTokens: 1_000 } })
  const run = await agent.run('Do I need an umbrella in Bergen?')
  const { inputTokens, outputTokens, costUsd } = run.state.usage
  console.log(typeof model === 'string' ? model : `${model.provider} ${model.modelId}`)
  console.log(run.status === 'completed' ? `  ${run.text}` : explain(run))
  console.log(`  ${inputTokens} tokens in, ${outputTokens} out, ${costUsd.toFixed(6)} USD`)
}

/** A model with the interface of an AI SDK provider package. It calls the weather tool once. */
function standIn(provider: string, modelId: string): AiSdkModel {
  const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'weather', input: '{"city":"Bergen"}' }
  const answer = { type: 'text', text: 'Yes: light rain, 14 degrees.' }
  const usage = { inputTokens: { total: 400 }, outputTokens: { total: 30 } }
  return {
    specificationVersion: 'v4',
    provider,
    modelId,
    async doGenerate({ prompt }: { prompt: readonly { role: string }[] }) {
      const isAnswered = prompt.some(({ role }) => role === 'tool')
      const unified = isAnswered ? 'stop' : 'tool-calls'
      return { content: [isAnswered ? answer : call], finishReason: { unified }, usage, warnings: [] }
    },
    doStream: () => Promise.reject(new Error('This stand-in cannot stream.')),
  }
}
