// Everything that is not a function of the state is an effect, so a run can be recorded and replayed: no model, no
// tool, the same state. A replay with a changed hook shows where the run would diverge.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent, hook, tool } from 'hookloop'
import { fileRecording, parseRecording, recordEffects, replayEffects } from 'hookloop/replay'
import { scriptedModel } from 'hookloop/testing'

let rolls = 0
const dice = tool({
  name: 'dice',
  description: 'Rolls a die.',
  input: { type: 'object' },
  execute: () => {
    rolls++
    return 1 + Math.floor(Math.random() * 6)
  },
})

const agent = createAgent({
  model: scriptedModel([{ toolCalls: [{ name: 'dice' }, { name: 'dice' }] }, 'That is my luck.']),
  use: [dice],
})

const folder = mkdtempSync(join(tmpdir(), 'hookloop-record-'))
try {
  const path = join(folder, 'run.jsonl')
  const recording = fileRecording(path)
  const live = await agent.run('Roll twice.', { effects: recordEffects(recording) })
  recording.close()
  for (const entry of parseRecording(readFileSync(path, 'utf8'))) {
    const what = 'key' in entry ? entry.key.replace(/^[^/]*/, '…') : ''
    console.log(entry.type.padEnd(6), what, 'value' in entry ? JSON.stringify(entry.value).slice(0, 70) : '')
  }

  const replayed = await agent.run('Roll twice.', { effects: replayEffects(recording) })
  assert.equal(JSON.stringify(replayed.state), JSON.stringify(live.state))
  console.log(`replayed to the same state: ${rolls} rolls in all, the model was not called again`)

  const nosy = hook('beforeInference', (ctx) => ctx.withRequest({ system: 'Cheat.' }), { name: 'nosy' })
  const other = await agent.with(nosy).run('Roll twice.', { effects: replayEffects(recording) })
  if (other.status === 'failed')
    console.log(`with another hook: ${other.error.code}, ${other.error.message.replace(/^"[^/]*|:.*/g, '')}`)
} finally {
  rmSync(folder, { recursive: true })
}
