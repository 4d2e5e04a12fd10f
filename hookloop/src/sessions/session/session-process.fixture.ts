// A process that works on sessions in a store, to be killed, raced and started again:
//   work <name> <first>  ends one session after the other, from <name>-<first> on, and says the number of each
//   end <id,id,…>        ends these sessions, and says the id of each
//   run <id>             starts a session and prints how its run ended, with the number of approvals it waits for
//   resume <id>          resumes it, and prints the same
//   answer <id> <answer> answers the first question that waits, and says so
//   rewind <id> <count>  rewinds it so many times, and again if it is locked, and says when it has done so
//   follow <id,id,…>     follows the events of these sessions, and says each with the id, until it is killed
// With CHANGED the agent has another tool. What tools do is a line each in the file of the world. With KILL_AT it kills itself at that write to the store, and
// with KILL_HOW=after when that write is stored. With WAIT_FOR tools wait for a file of that name. With KILL_IN it has a
// hook at every point of the lifecycle, says each of them as it gets there, and kills itself at the one of that name. With
// STREAM answers have texts, each piece of which is stored before the next one is written.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { Run } from '../../core/agent/run.ts'
import { tool, type OnUnknownOutcome } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import type { LanguageModel } from '../../core/state/inference.ts'
import { textOf } from '../../core/state/message.ts'
import type { Answer, Approval } from '../../core/state/tool-call.ts'
import { hook } from '../../core/hooks/hook.ts'
import { scriptedModel, type ScriptedCall } from '../../models/scripted.ts'
import { answerApproval, listApprovals } from './approvals.ts'
import { rewindSession } from './rewind-session.ts'
import { postgresStore } from '../stores/postgres-store.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { findSession } from './open-session.fixture.ts'
import { watchSession } from '../log/watch-session.ts'

const [kind = '', place = '', world = '', mode = '', id = '', given = ''] = process.argv.slice(2)
const waitFor = process.env['WAIT_FOR']
const killAt = Number(process.env['KILL_AT'] ?? Infinity)
const killIn = process.env['KILL_IN']
const deltas = process.env['STREAM'] !== undefined
const killsAfter = process.env['KILL_HOW'] === 'after'
const say = (text: unknown): void => void process.stdout.write(`${String(text)}\n`)

const store = deadly(kind === 'sqlite' ? sqliteStore(place) : postgresStore({ connectionString: place }))

let session = id

type How = { concurrent?: true; idempotent?: true; ask?: true; onUnknownOutcome?: OnUnknownOutcome }

const wordOf = (args: unknown): string => (args as { of?: string }).of ?? ''
const tries = new Set<string>()

function acting(name: string, options: How = {}) {
  return tool({
    name,
    description: name,
    input: { type: 'object' },
    ...options,
    execute: async (args, { idempotencyKey }) => {
      const of = wordOf(args)
      if (waitFor !== undefined) while (!existsSync(waitFor)) await pause(5)
      if (name === 'send' && tries.size < tries.add(idempotencyKey).size) throw new Error('busy')
      reach('tool')
      appendFileSync(world, `${session} ${name}${of} ${idempotencyKey}\n`)
      reach('done')
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
const again = hook(
  'aroundToolUse',
  async (_ctx, next) => {
    const first = await next()
    return first.status === 'failed' ? next() : first
  },
  { name: 'again', tool: 'send' },
)
const reached = new Map<string, number>()

function reach(what: string): void {
  if (killIn === undefined) return
  reached.set(what, (reached.get(what) ?? 0) + 1)
  const point = `${what}:${reached.get(what)}`
  if (point === killIn) die()
  if (killIn === 'nowhere') say(point)
}

/** Gets to every point of the lifecycle and changes nothing there. */
const everywhere = (
  [
    'onUserInput',
    'beforeExecution',
    'beforeStep',
    'beforeInference',
    'afterInference',
    'beforeToolUse',
    'afterToolUse',
    'afterStep',
    'onPause',
    'onResume',
    'onStop',
    'afterExecution',
  ] as const
).map((trigger) =>
  hook(
    trigger,
    (ctx) => {
      reach(trigger)
      return ctx
    },
    { name: `at ${trigger}` },
  ),
)

async function between<T>(trigger: string, next: () => Promise<T>): Promise<T> {
  reach(`${trigger} in`)
  const result = await next()
  reach(`${trigger} out`)
  return result
}
const around = [
  hook('aroundInference', (_ctx, next) => between('aroundInference', () => next()), { name: 'at aroundInference' }),
  hook('aroundToolUse', (_ctx, next) => between('aroundToolUse', () => next()), { name: 'at aroundToolUse' }),
]
const calling = (name: string, of = ''): ScriptedCall => ({ name, args: of === '' ? {} : { of }, id: `${name}${of}` })
const script = scriptedModel(({ messages }) => {
  const turn = messages.filter(({ role }) => role === 'assistant').length
  if (turn === 0)
    return { ...(deltas && { text: 'First I look.' }), toolCalls: ['a', 'b', 'c'].map((of) => calling('look', of)) }
  if (turn === 1) return { toolCalls: [calling('note'), calling('pay', '!'), calling('send')] }
  if (turn === 2) return { toolCalls: ['x', 'y'].map((of) => calling('wire', of)) }
  return 'Done.'
})
const model: LanguageModel = {
  ...script,
  async infer(request, { onDelta, ...call }) {
    const reply = await script.infer(request, call)
    const text = textOf(reply.content)
    for (const delta of onDelta === undefined ? [] : (text.match(/.{1,5}/g) ?? [])) {
      const after = await lastSeq() // before it is written: a database answers later
      onDelta!({ type: 'text', delta })
      await stored(delta, after)
    }
    return reply
  },
}

async function lastSeq(): Promise<number> {
  let last = 0
  for await (const { seq } of watchSession(store, session, { follow: false })) last = seq
  return last
}

async function stored(delta: string, after: number): Promise<void> {
  for await (const event of watchSession(store, session, { after })) {
    if (event.type === 'text' && event.delta === delta) return
  }
}

const agent = createAgent({
  model,
  store,
  use: [
    acting('look', { concurrent: true }),
    acting('note', { idempotent: true }),
    acting('pay', { ask: true }),
    acting('send'),
    acting('wire', { concurrent: true, onUnknownOutcome: 'ask' }),
    again,
    mail,
    ...(killIn === undefined ? [] : [...everywhere, ...around]),
    ...(process.env['CHANGED'] === undefined ? [] : [acting('extra')]),
    approval('suspend'),
  ],
})

try {
  if (mode === 'work') await work(Number(given))
  else if (mode === 'end') await endAll(id.split(','))
  else if (mode === 'run') tell(await agent.run('Go.', { session: id, deltas }))
  else if (mode === 'resume') tell(await agent.resume(id, { deltas }))
  else if (mode === 'rewind') await rewind(Number(given))
  else if (mode === 'follow') await Promise.all(id.split(',').map((each) => follow(each)))
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

async function endAll(ids: readonly string[]): Promise<void> {
  for (const each of ids) {
    session = each
    await end()
    say(each)
  }
}

/** Starts or resumes the session, and answers approvals, until its run is over. */
async function end(): Promise<void> {
  for (;;) {
    const {
      open,
      hasInput,
      asked: [asked],
    } = await findSession(store, session)
    if (open === undefined && hasInput) return
    if (asked !== undefined) await answerApproval(store, { session, approval: asked.id, answer: answerTo(asked) })
    if (open === undefined) await agent.run('Go.', { session, deltas })
    else await agent.resume(session, { deltas })
  }
}

/** An interrupted call is allowed again if it has not taken effect. */
function answerTo({ toolCall: { name, args }, interruptions }: Approval): Answer {
  const isDone =
    interruptions !== undefined && readFileSync(world, 'utf8').includes(`${session} ${name}${wordOf(args)} `)
  return isDone ? { block: 'it is done' } : 'allow'
}

async function rewind(count: number): Promise<void> {
  for (let left = count; left > 0;) {
    const isDone = await rewindSession(store, id).then(
      () => true,
      (error: { code?: string }) => {
        if (error.code !== 'SESSION_BUSY') throw error
        return false
      },
    )
    if (isDone) left--
    else await pause(5)
  }
  say(`${count} rewinds`)
}

async function follow(each: string): Promise<void> {
  for await (const event of watchSession(store, each)) say(`${each} ${JSON.stringify(event)}`)
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
        append(lines, options) {
          const dies = ++writes === killAt
          if (dies && !killsAfter) die()
          const storing = writer.append(lines, options)
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
