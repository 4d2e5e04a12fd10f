// A process whose runs have limits that it shares with others. It reads commands, one per line, and says what happens:
//   run <session>      starts a run. It says "called <session>" when the model is called and "ended <session> <status>" with the number of warnings
//   resume <session>   resumes it
//   answer <session>   the model answers. In the session of a name with "tool" it calls a tool first
//   reject <session>   the model answers 429, with a wait of five minutes
//   pause              stops itself, as SIGSTOP does, between two statements: a process that is stopped in one keeps the lock of SQLite
//   add <times>        adds 1 to the value "count" so many times at once, and says "added"
import { createInterface } from 'node:readline'
import type { Use } from '../../core/agent/capability.ts'
import type { Run } from '../../core/agent/run.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError, messageOf } from '../../errors.ts'
import { openStore } from './shared-store.fixture.ts'
import { budget } from './budget.ts'
import { callLimit } from './call-limit.ts'
import { gatedModel } from './limits.fixture.ts'
import { rateLimit } from './rate-limit.ts'
import { runLimit } from './run-limit.ts'

const [kind = '', place = '', limit = ''] = process.argv.slice(2)
const say = (text: string): void => void process.stdout.write(`${text}\n`)
const store = openStore(kind, place)
const limits: { readonly [name: string]: Use } = {
  budget: budget({ store, key: 'ann', maxTokens: 5 * 4_200, maxWaitMs: 0 }),
  runs: runLimit({ store, maxRuns: 2, leaseMs: 4_000 }),
  calls: callLimit({ store, maxCalls: 2, leaseMs: 4_000 }),
  rate: rateLimit({ store }),
}
const gated = gatedModel()
const model: typeof gated = {
  ...gated,
  infer(request, how) {
    const reply = gated.infer(request, how)
    say(`called ${gated.open.at(-1)}`)
    return reply
  },
}
const agent = createAgent({ model, store, use: [limits[limit]] })

async function report(id: string, running: Promise<Run>): Promise<void> {
  try {
    const { status, warnings } = await running
    say(`ended ${id} ${status} ${warnings.filter(({ code }) => code === 'LIMIT_WAITED').length}`)
  } catch (error) {
    say(`failed ${id} ${messageOf(error)}`)
  }
}

say('ready')
for await (const line of createInterface({ input: process.stdin })) {
  const [command, id = ''] = line.split(' ')
  if (command === 'run') void report(id, agent.run(id, { session: id }))
  if (command === 'resume') void report(id, agent.resume(id))
  if (command === 'answer') gated.answer(id)
  if (command === 'reject')
    gated.answer(id, new AgentError('MODEL_RATE_LIMITED', '429', { value: { retryAfterMs: 300_000 } }))
  if (command === 'pause') process.kill(process.pid, 'SIGSTOP')
  if (command === 'add') {
    const add = (): Promise<unknown> => store.update('count', (value) => Number(value ?? 0) + 1)
    await Promise.all(Array.from({ length: Number(id) }, add))
    say('added')
  }
}
process.exit(0)
