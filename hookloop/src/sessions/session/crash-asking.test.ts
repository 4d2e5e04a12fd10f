import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Agent } from '../../core/agent/agent.ts'
import { tool } from '../../core/agent/tool.ts'
import { guards } from '../../capabilities/guards.ts'
import { selfCritique } from '../../capabilities/self-critique.ts'
import { summarization } from '../../capabilities/summarization/summarization.ts'
import { createAgent } from '../../create-agent.ts'
import { textOf, type Message } from '../../core/state/message.ts'
import { hook } from '../../core/hooks/hook.ts'
import { scriptedModel, type ScriptedModel } from '../../models/scripted.ts'
import { dyingStore } from './dying-store.fixture.ts'
import { readSession } from '../log/read-session.ts'
import { strictReplay } from '../replay/strict-replay.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'

// A run whose hooks ask models in three ways: about the input, for summaries, and about the answer. It dies everywhere.

const READS = 9

const read = tool({
  name: 'read',
  description: 'Reads.',
  input: { type: 'object', properties: {} },
  idempotent: true,
  execute: () => 'x'.repeat(400),
})

/** The number of results in a conversation, including those in its summary. */
function seen(text: string): number {
  return Number(/seen (\d+)/.exec(text)?.[1] ?? 0) + (text.match(/x{400}/g)?.length ?? 0)
}

function said(messages: Iterable<Message>): string {
  return [...messages].map(({ content }) => JSON.stringify(content)).join('\n')
}

type Asked = { readonly helper: ScriptedModel; readonly agent: Agent }

function asking(store?: SessionStore): Asked {
  const model = scriptedModel(
    ({ messages }) => {
      const text = said(messages)
      if (seen(text) < READS) return { toolCalls: [{ name: 'read', id: `c${seen(text)}` }] }
      return text.includes('wants it revised') ? 'A better answer.' : 'An answer.'
    },
    { usage: { inputTokens: 0 } },
  )
  const helper = scriptedModel(({ messages }) => {
    const text = textOf(messages.at(-1)!.content)
    if (text.startsWith('<conversation>')) return `seen ${seen(text)}`
    if (!text.startsWith('<task>')) return `${text}, please`
    const verdict = text.includes('better') ? 'approve' : 'revise'
    return { toolCalls: [{ name: 'final_answer', args: { verdict, summary: 'Hm.', weaknesses: [], suggestions: [] } }] }
  })
  const polite = hook('onUserInput', async (ctx) =>
    ctx.withInput((await ctx.infer({ model: helper, prompt: ctx.input })).text),
  )
  const sizes = { maxMessageTokens: 200, maxBufferTokens: 300, maxSummaryTokens: 50 }
  const agent = createAgent({
    model,
    use: [
      read,
      polite,
      guards({ maxTokens: 1e6 }),
      summarization({ ...sizes, model: helper }),
      selfCritique({ model: helper }),
    ],
    ...(store !== undefined && { store }),
  })
  return { helper, agent }
}

async function drive({ agent }: Asked, store: SessionStore): Promise<void> {
  const lines = (await store.read('s'))?.lines ?? []
  if (lines.length === 0) await agent.run('go', { session: 's' })
  else if (readSession(lines).open !== undefined) await agent.resume('s')
}

/** What a session came to, without times and ids. */
async function ending(store: SessionStore): Promise<string> {
  const { state, open } = readSession((await store.read('s'))!.lines)
  const { execution, messages, metadata, usage } = state!
  assert.equal(open, undefined)
  const [summary] = messages.slice()
  assert.match(textOf(summary!.content), /^Summary of the conversation/)
  const counts = JSON.stringify(metadata).replaceAll(execution!.id, 'id')
  return JSON.stringify([messages, counts, usage, execution!.final?.status, execution!.steps.length])
}

test('a run whose hooks ask models comes to the same end wherever its process dies', async () => {
  const calm = memoryStore()
  const counting = dyingStore(calm, { at: Infinity, stored: true })
  await drive(asking(counting), counting)
  const end = await ending(calm)
  const writes = counting.writes()
  assert.ok(writes > 10, `${writes} writes`)
  for (let at = 1; at <= writes; at++) {
    for (const stored of [true, false]) {
      const inner = memoryStore()
      const store = dyingStore(inner, { at, stored })
      await Promise.race([drive(asking(store), store), store.died])
      const survivor = asking(inner)
      await drive(survivor, inner)
      assert.equal(await ending(inner), end, `died at write ${at}, ${stored ? 'stored' : 'not stored'}`)
    }
  }
})

test('a hook does not repeat a model call that ended before the process died', async () => {
  const inner = memoryStore()
  const first = asking()
  const store = dyingStore(inner, { at: 12, stored: true })
  const dying = asking(store)
  await Promise.race([drive(dying, store), store.died])
  const before = dying.helper.requests.length
  const survivor = asking(inner)
  await drive(survivor, inner)
  await first.agent.run('go')
  assert.ok(before > 0)
  assert.ok(before + survivor.helper.requests.length <= first.helper.requests.length + 1)
})

test('the same run is replayed without a model', async () => {
  const store = memoryStore()
  const { state } = await asking(store).agent.run('go', { session: 's' })
  const silent = asking()
  const { run } = await strictReplay(silent.agent, store, 's')
  assert.equal(JSON.stringify(run.state), JSON.stringify(state))
  assert.deepEqual([run.status, silent.helper.requests.length], ['completed', 0])
})
