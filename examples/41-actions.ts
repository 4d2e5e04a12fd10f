// Hooks whose work happens elsewhere: a command, an HTTP endpoint, another model, another agent. All receive the same
// event, answer with the same JSON, and have the options of every other hook.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAgent, explain, guard, hook, tool } from 'hookloop'
import { http, prompt, shell, subagent } from 'hookloop/actions'
import { scriptedModel } from 'hookloop/testing'
import * as z from 'zod'

const bash = tool({
  name: 'bash',
  description: 'Runs a command.',
  input: z.object({ command: z.string() }),
  execute: ({ command }) => `ran ${command}`,
})

// A command: the event is on standard input; exit code 2 blocks, with the reason on standard error

const noPush = guard(
  'beforeToolUse',
  shell({ command: `if grep -q 'git push'; then echo 'Agents never push.' >&2; exit 2; fi` }),
  { name: 'no-push', tool: bash },
)

// An HTTP endpoint: it receives the event and answers with an outcome. Local addresses must be allowed

const server = createServer((request, response) => {
  let text = ''
  request.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  request.on('end', () => {
    const { toolCall } = JSON.parse(text) as { toolCall: { args: { command: string } } }
    const { command } = toolCall.args
    response.end(command === 'npm i' ? JSON.stringify({ updatedInput: { command: 'npm ci' } }) : '')
  })
})
await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
const { port } = server.address() as AddressInfo
const pinned = hook('beforeToolUse', http({ url: `http://127.0.0.1:${port}/pin`, allowPrivate: true }), {
  name: 'pinned',
  tool: bash,
})

// A small model: it answers yes or no with a reason. Its cost counts in the run

const small = scriptedModel(({ messages }) => {
  const isRisky = JSON.stringify(messages.at(-1)).includes('rm -rf')
  return JSON.stringify({ ok: !isRisky, reason: isRisky ? 'It deletes more than it says.' : 'Harmless.' })
})
const judged = guard('beforeToolUse', prompt({ model: small, prompt: 'Can this command be undone?' }), {
  name: 'judged',
  tool: bash,
})

// Another agent: it investigates with its own tools, under the guards of the run

const inspector = scriptedModel([
  '{"ok":false,"reason":"The tests were not run."}',
  '{"ok":true,"reason":"They were."}',
])
const tested = guard('onStop', subagent({ definition: { model: inspector }, prompt: 'Were the tests run?' }), {
  name: 'tested',
})

const commands = ['git push', 'npm i', 'rm -rf build']
const agent = createAgent({
  model: scriptedModel(({ messages }) => {
    const said = messages.filter(({ role }) => role === 'assistant').length
    return commands[said] === undefined ? 'Done.' : { toolCalls: [{ name: 'bash', args: { command: commands[said] } }] }
  }),
  use: [bash, noPush, pinned, judged, tested],
})

const run = await agent.run('Set it up.')
server.close()
for (const { toolExecutions } of run.state.execution!.steps) {
  for (const { status, output } of toolExecutions) console.log(`${status.padEnd(8)} ${output as string}`)
}
console.log(
  `${small.requests.length} questions to the small model, ${inspector.requests.length} looks of the inspector\n`,
)
console.log(explain(run))
