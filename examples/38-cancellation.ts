// A run that is asked to stop ends in order: the running tool finishes, nothing new starts, and the conversation can
// continue later. Here a file requests it; any process can create one.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cancellation, cancellationFile, createAgent, tool } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'

const folder = mkdtempSync(join(tmpdir(), 'cancel-'))
const stop = join(folder, 'STOP')

let copied = 0
const copy = tool({
  name: 'copy',
  description: 'Copies the next file.',
  input: { type: 'object' },
  execute: () => {
    if (++copied === 2) writeFileSync(stop, '') // any other process could do this
    return `copied ${copied}`
  },
})

const copying = { toolCalls: [{ name: 'copy' }] }
const agent = createAgent({
  model: scriptedModel([copying, copying, copying, 'All copied.']),
  use: [copy, cancellation(cancellationFile(stop))],
})

const first = await agent.run('Copy everything.')
console.log(
  first.status,
  first.status === 'stopped' ? first.reason : '',
  `after ${copied} files; asked by a file: ${existsSync(stop)}`,
)

rmSync(folder, { recursive: true })
const second = await agent.run('Continue.', { from: first })
console.log(second.status, `after ${copied} files: ${second.text}`)
