// A session outlives its process. A tool kills the process it runs in; another one goes on: what was done is not done
// again, and of what may have been done the model is told. A question is answered by anybody. Then it is forked.
import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { approval, createAgent, tool } from 'hookloop'
import { answerApproval, listApprovals, listPoints, sqliteStore } from 'hookloop/stores'
import { scriptedModel } from 'hookloop/testing'
import * as z from 'zod'

const [, , given] = process.argv
const folder = given ?? mkdtempSync(join(tmpdir(), 'hookloop-'))
const store = sqliteStore(join(folder, 'sessions.db'))
const log = (what: string): string => {
  appendFileSync(join(folder, 'log'), `${what}. `)
  return what
}

const named = (name: string, execute: () => unknown, ask = false) =>
  tool({ name, description: `Does it: ${name}.`, input: z.object({}), execute, ask })
const pack = named('pack', () => log('packed'))
const ship = named('ship', () => log('shipped') && process.kill(process.pid, 'SIGKILL'))
const pay = named('pay', () => log('paid'), true)

const model = scriptedModel(({ messages }) => {
  const { role, content } = messages.at(-1)!
  if (role === 'user') return { toolCalls: [{ name: 'pack' }, { name: 'ship' }] }
  return JSON.stringify(content).includes('may have had an effect') ? { toolCalls: [{ name: 'pay' }] } : 'All done.'
})
const agent = createAgent({ model, store, use: [pack, ship, pay, approval('suspend')] })

if (given !== undefined) await agent.run('Pack, ship and pay.', { session: 'order' }) // it does not come back

try {
  execFileSync(process.execPath, [...process.execArgv, import.meta.filename, folder])
} catch (died) {
  console.log(`the first process died of ${(died as { signal: string }).signal}`)
}

console.log(`the second goes on: ${(await agent.resume('order')).status}`)
for (const { session, id, message } of await listApprovals(store)) {
  console.log(`somebody is asked: ${message}`)
  await answerApproval(store, { session, approval: id, answer: 'allow', by: 'jane' })
}
console.log(`answered: ${(await agent.resume('order')).text}`)
console.log(`really done: ${readFileSync(join(folder, 'log'), 'utf8')}`)

const [first] = await listPoints(store, 'order')
const fork = await agent.session('order').fork({ at: first!.seq, as: 'what-if' })
console.log(`${fork.id} begins with ${(await fork.state())!.messages.length} messages`)

await store.close()
rmSync(folder, { recursive: true })
