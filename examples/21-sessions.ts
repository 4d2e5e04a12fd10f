// A session survives its process. A tool kills the process, and another process resumes the run: completed calls do
// not run again, and the model is informed about an unknown outcome. Then an approval is answered, and the session is
// forked.
import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { approval, createAgent, tool } from 'hookloop'
import { answerApproval, listApprovals, listPoints, sqliteStore } from 'hookloop/sessions'
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

if (given !== undefined) await agent.run('Pack, ship and pay.', { session: 'order' }) // never returns

try {
  execFileSync(process.execPath, [...process.execArgv, import.meta.filename, folder])
} catch (died) {
  console.log(`the first process was ended by ${(died as { signal: string }).signal}`)
}

console.log(`the second process resumes: ${(await agent.resume('order')).status}`)
for (const { session, id, message } of await listApprovals(store)) {
  console.log(`approval needed: ${message}`)
  await answerApproval(store, { session, approval: id, answer: 'allow', by: 'jane' })
}
console.log(`after the approval: ${(await agent.resume('order')).text}`)
console.log(`executed: ${readFileSync(join(folder, 'log'), 'utf8')}`)

const [first] = await listPoints(store, 'order')
const fork = await agent.session('order').fork({ at: first!.seq, as: 'what-if' })
console.log(`${fork.id} starts with ${(await fork.state())!.messages.length} messages`)

await store.close()
rmSync(folder, { recursive: true })
