import { createAgent, guards, tool, type Agent, type Hook, type LanguageModel, type ModelReply } from 'hookloop'
import type { SessionStore } from 'hookloop/sessions'
import * as z from 'zod'

// The same work for both sides: a model that makes one tool call per step, a tool that adds, and Zod validation.

export const input = z.object({ a: z.number(), b: z.number() })

export function add({ a, b }: { a: number; b: number }): { sum: number } {
  return { sum: a + b }
}

/** Replies at once, and does not read the messages: the measurements are of the loop, and an array of them is made when it is read. */
export function countingModel(steps: number): LanguageModel {
  const done: ModelReply = {
    content: [{ type: 'text', text: 'done' }],
    finishReason: 'stop',
    usage: { inputTokens: 1, outputTokens: 1 },
  }
  const stepOf = new Map<string | undefined, number>()
  return {
    provider: 'bench',
    modelId: 'counting',
    async infer(_request, { conversation }) {
      const step = stepOf.get(conversation) ?? 0
      if (step >= steps - 1) {
        stepOf.delete(conversation)
        return done
      }
      stepOf.set(conversation, step + 1)
      return {
        content: [{ type: 'tool-call', toolCallId: `c${step}`, toolName: 'add', input: { a: step, b: 1 } }],
        finishReason: 'tool-calls',
        usage: { inputTokens: 1, outputTokens: 1 },
      }
    },
  }
}

/** Default guards and the ledger are on, with higher limits, so that runs are long enough to measure. */
export function agentFor(steps: number, extra: readonly Hook[] = [], store?: SessionStore): Agent {
  return createAgent({
    model: countingModel(steps),
    ...(store !== undefined && { store }),
    use: [
      tool({ name: 'add', description: 'Adds two numbers.', input, execute: add }),
      guards({ maxSteps: steps + 1, maxTokens: 1e12, maxTimeMs: 1e12 }),
      ...extra,
    ],
  })
}

type BareMessage = { role: string; content: unknown }

/** The hand-written equivalent for one agent: no hooks, no ledger, no stored state. */
export async function bareLoop(steps: number): Promise<BareMessage[]> {
  const model = countingModel(steps)
  const messages: BareMessage[] = [{ role: 'user', content: [{ type: 'text', text: 'go' }] }]
  const { signal } = new AbortController()
  for (;;) {
    const reply = await model.infer({ system: '', messages: messages as never, tools: [] }, { signal })
    messages.push({ role: 'assistant', content: reply.content })
    const results: unknown[] = []
    for (const part of reply.content) {
      if (part.type !== 'tool-call') continue
      const parsed = input.safeParse(part.input)
      const output = parsed.success ? await add(parsed.data) : { error: parsed.error.message }
      results.push({ type: 'tool-result', toolCallId: part.toolCallId, toolName: part.toolName, output })
    }
    if (results.length === 0) return messages
    messages.push({ role: 'tool', content: results })
  }
}
