import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAgent } from 'hookloop'
import { fire, scriptedModel } from 'hookloop/testing'
import { getNotes, notebook } from './notebook.ts'

const note = (text: string) => ({ toolCalls: [{ name: 'take_note', args: { text } }] })

test('notes stay in the conversation', async () => {
  const model = scriptedModel([note('Ann likes tea.'), 'Noted.', 'She likes tea.'])
  const agent = createAgent({ model, use: [notebook()] })
  const first = await agent.run('Ann likes tea.')
  const second = await agent.run('What does Ann like?', { from: first.state })
  assert.deepEqual(getNotes(second.state), ['Ann likes tea.'])
})

test('a full notebook takes no more notes', async () => {
  const model = scriptedModel([note('one'), note('two'), 'Done.'])
  const agent = createAgent({ model, use: [notebook({ maxNotes: 1 })] })
  const run = await agent.run('Write them down.')
  assert.deepEqual(getNotes(run.state), ['one'])
})

test('the guard alone decides by the state', async () => {
  const [limit] = notebook({ maxNotes: 0 }).hooks!
  const { decision } = await fire(limit!, 'beforeToolUse', {
    toolCall: { name: 'take_note', args: { text: 'one' } },
  })
  assert.equal(decision, 'block')
})
