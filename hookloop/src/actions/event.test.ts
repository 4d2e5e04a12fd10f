import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { tool } from '../core/agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import type { JsonObject } from '../values/json.ts'
import { List } from '../core/state/list.ts'
import { textMessage } from '../core/state/message.ts'
import { scriptedModel } from '../models/scripted.ts'
import { action, type Action } from '../core/hooks/action.ts'
import { guard, hook, observe } from '../core/hooks/hook.ts'
import { isAround, specOf, triggerNames, type PlainTrigger } from '../core/hooks/triggers.ts'
import { fire } from '../testing/fire.ts'
import { eventText } from './event.ts'

function listening(heard: JsonObject[], conversation = false): Action {
  return action({
    kind: 'listening',
    label: 'listening',
    async perform(ctx) {
      heard.push(JSON.parse(eventText(ctx, { conversation })) as JsonObject)
      return {}
    },
  })
}

suite('an event', () => {
  for (const trigger of triggerNames.filter((name) => !isAround(name)) as PlainTrigger[]) {
    test(`an event at ${trigger} has the run, the step and everything the trigger provides`, async () => {
      const heard: JsonObject[] = []
      await fire(hook(trigger, listening(heard)), trigger)
      const always = ['trigger', 'now', 'agentId', 'executionId', 'stepCount', 'spent', 'metadata']
      const carried = specOf(trigger).carries.filter((name) => name !== 'subagent')
      assert.equal(heard[0]!['trigger'], trigger)
      for (const name of [...always, ...carried]) assert.ok(name in heard[0]!, name)
    })
  }

  test('an event contains a long call unchanged', async () => {
    const heard: JsonObject[] = []
    const args = { command: `echo ${'x'.repeat(3_000_000)}; rm -rf /` }
    await fire(guard('beforeToolUse', listening(heard)), 'beforeToolUse', { toolCall: { id: 'c', name: 'bash', args } })
    assert.deepEqual(heard[0]!['toolCall'], { id: 'c', name: 'bash', args })
  })

  test('an event that is too long is a failure: it could only be judged in part', async () => {
    const judges = guard('beforeToolUse', listening([]))
    const outcome = await fire(judges, 'beforeToolUse', { toolCall: { name: 'x', args: { text: 'x'.repeat(17e6) } } })
    assert.deepEqual([outcome.decision, /characters; the maximum is/.test(outcome.message!)], ['block', true])
  })

  test('an event has the length and the last message of a conversation, or all of it on request', async () => {
    const [brief, whole]: [JsonObject[], JsonObject[]] = [[], []]
    const messages = [textMessage('user', 'first'), textMessage('user', 'last')]
    await fire(hook('beforeCompaction', listening(brief)), 'beforeCompaction', { messages })
    await fire(hook('beforeCompaction', listening(whole, true)), 'beforeCompaction', { messages })
    assert.deepEqual(brief[0]!['messages'], { count: 2, last: 'last' })
    assert.deepEqual((whole[0]!['messages'] as unknown[]).length, 2)
  })

  test('an event of a request does not copy the conversation', async (t) => {
    const model = {
      provider: 'test',
      modelId: 'm',
      infer: async () => ({ content: [], finishReason: 'stop' as const }),
    }
    const reads = t.mock.getter(List.prototype, 'items').mock
    const counts: number[] = []
    for (const use of [[], [hook('beforeInference', listening([]))]]) {
      reads.resetCalls()
      await createAgent({ model, use }).run('Go.')
      counts.push(reads.callCount())
    }
    assert.equal(counts[1], counts[0])
  })

  test('an event of a request names the model and the tools', async () => {
    const heard: JsonObject[] = []
    const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'done' })
    const model = scriptedModel(['done'])
    await createAgent({ model, use: [work, observe('beforeInference', listening(heard))] }).run('go')
    const request = heard[0]!['request'] as JsonObject
    assert.deepEqual(Object.keys(request).toSorted(), ['messages', 'model', 'system', 'tools'])
    assert.deepEqual([typeof request['model'], request['messages']], ['string', { count: 1, last: 'go' }])
  })

  test('an event does not contain metadata of the runtime', async () => {
    const heard: JsonObject[] = []
    const metadata = { role: 'guest', 'hookloop.cli': { seal: 'secret' }, 'hookloop.subagent': { name: 'reader' } }
    await fire(hook('beforeStep', listening(heard)), 'beforeStep', { metadata })
    assert.deepEqual(heard[0]!['metadata'], { role: 'guest', 'hookloop.subagent': { name: 'reader' } })
  })
})
