// A process that works on one session whose agents look around, and kills itself right after a certain look. Each look is
// a line in a file. It starts or resumes the session, and answers approvals, until its run is over.
import { appendFileSync } from 'node:fs'
import { familyWorld, isAsked } from '../../core/subagents/family-world.fixture.ts'
import { approval } from '../../capabilities/approval.ts'
import { guard } from '../../core/hooks/hook.ts'
import { answerApproval } from './approvals.ts'
import { findSession } from './open-session.fixture.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'

const [file = '', log = '', task = '', killAt = ''] = process.argv.slice(2)
const store = sqliteStore(file)
const ask = guard('beforeToolUse', (ctx) => (isAsked(ctx.toolCall.args) ? ctx.ask('Look?') : ctx), {
  name: 'ask',
  tool: 'look',
})
const { agent } = familyWorld({
  store,
  use: [ask, approval('suspend')],
  onLook: (at) => {
    appendFileSync(log, `${at}\n`)
    if (at === killAt) process.kill(process.pid, 'SIGKILL')
  },
})

for (;;) {
  const {
    open,
    state,
    hasInput,
    asked: [asked],
  } = await findSession(store, 's')
  if (hasInput && open === undefined) {
    process.stdout.write(state!.execution!.status)
    break
  }
  if (asked !== undefined) await answerApproval(store, { session: 's', approval: asked.id, answer: 'allow' })
  if (hasInput) await agent.resume('s')
  else await agent.run(task, { session: 's' })
}
await store.close()
