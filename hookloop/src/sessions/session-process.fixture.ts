// A process that works on sessions in a store, to be killed, raced and started again:
//   work <name> <first>  ends one session after the other, from <name>-<first> on, and says the number of each
//   run <id>             begins a session and says how its run ended, with the questions it waits for
//   resume <id>          goes on with it, and says the same
//   answer <id> <answer> answers the first question that waits, and says so
// What tools do is a line each in the file of the world. With KILL_AT it kills itself at that write to the store, and
// with KILL_HOW=after when that write is stored. With WAIT_FOR tools wait for a file of that name.
import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { Run } from '../agent/run.ts'
import { pendingOf } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { approval } from '../capabilities/approval.ts'
import { createAgent } from '../create-agent.ts'
import type { Answer } from '../data/tool-call.ts'
import { hook } from '../hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { answerApproval, listApprovals } from './approvals.ts'
import { fileStore } from './file-store.ts'
import { readSession } from './kept-session.ts'
import { postgresStore } from './postgres-store.ts'
import { sqliteStore } from './sqlite-store.ts'
import type { SessionStore } from './store.ts'

const [kind = '', place = '', world = '', mode = '', id = '', given = ''] = process.argv.slice(2)
const waitFor = process.env['WAIT_FOR']
const killAt = Number(process.env['KILL_AT'] ?? Infinity)
const killsAfter = process.env['KILL_HOW'] === 'after'
const say = (text: unknown): void => void process.stdout.write(`${String(text)}\n`)

const store = deadly(
  kind === 'file'
    ? fileStore(place)
    : kind === 'sqlite'
      ? sqliteStore(place)
      : postgresStore({ connectionString: place }),
)

let session = id

function acting(name: string, options: { concurrent?: true; idempotent?: true; ask?: true } = {}) {
  return tool({
    name,
    description: name,
    input: { type: 'object' },
    ...options,
    execute: async (args, { idempotencyKey }) => {
      const { of = '' } = args as { of?: string }
      if (waitFor !== undefined) while (!existsSync(waitFor)) await pause(5)
      appendFileSync(world, `${session} ${name}${of} ${idempotencyKey}\n`)
      return `${name} ${of}`
    },
  })
}

const mail = hook(
  'afterExecution',
  async (ctx) => {
    appendFileSync(world, `${session} mail -\n`)
    return ctx
  },
  { name: 'mail', effect: true },
)
const model = scriptedModel(({ messages }) => {
  const turn = messages.filter(({ role }) => role === 'assistant').length
  if (turn === 0) return { toolCalls: ['a', 'b', 'c'].map((of) => ({ name: 'look', args: { of } })) }
  if (turn === 1) return { toolCalls: [{ name: 'note' }, { name: 'pay', args: { of: '!' } }, { name: 'send' }] }
  return 'Done.'
})
const agent = createAgent({
  model,
  store,
  use: [
    acting('look', { concurrent: true }),
    acting('note', { idempotent: true }),
    acting('pay', { ask: true }),
    acting('send'),
    mail,
    approval('suspend'),
  ],
})

try {
  if (mode === 'work') await work(Number(given))
  else if (mode === 'run') tell(await agent.run('Go.', { session: id }))
  else if (mode === 'resume') tell(await agent.resume(id))
  else await answer(JSON.parse(given) as Answer)
} catch (error) {
  say((error as { code?: string }).code ?? error)
}
await store.close()

async function work(first: number): Promise<never> {
  say('go')
  for (let number = first; ; number++) {
    session = `${id}-${number}`
    await end()
    say(number)
  }
}

/** Begins the session or goes on with it, and answers what is asked, until its run is over. */
async function end(): Promise<void> {
  for (;;) {
    const { open, state, records } = readSession((await store.read(session))?.lines ?? [])
    const isOver = open === undefined && records.some(({ type }) => type === 'input')
    if (isOver) return
    const isAnswered = open?.answers !== undefined || Object.keys(open?.given ?? {}).length > 0
    const [asked] = open?.phase === 'suspended' && !isAnswered ? pendingOf(state!) : []
    if (asked !== undefined) await answerApproval(store, { session, approval: asked.id, answer: 'allow' })
    if (open === undefined) await agent.run('Go.', { session })
    else await agent.resume(session)
  }
}

function tell(run: Run): void {
  const pending = run.status === 'suspended' ? run.pending.length : 0
  say([run.status, pending].join(' '))
}

async function answer(words: Answer): Promise<void> {
  const [asked] = await listApprovals(store)
  await answerApproval(store, { session: asked!.session, approval: asked!.id, answer: words })
  say('answered')
}

function deadly(inner: SessionStore): SessionStore {
  let writes = 0
  return {
    ...inner,
    async open(...args) {
      const writer = await inner.open(...args)
      return {
        ...writer,
        append(lines, head) {
          const dies = ++writes === killAt
          if (dies && !killsAfter) die()
          const storing = writer.append(lines, head)
          if (dies) return Promise.resolve(storing).then(die)
          return storing
        },
      }
    },
  }
}

function die(): never {
  process.kill(process.pid, 'SIGKILL')
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0) // it is on its way
}
