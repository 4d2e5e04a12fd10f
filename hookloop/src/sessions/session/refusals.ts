import { pendingOf } from '../../agent/run.ts'
import type { Approval } from '../../state/tool-call.ts'
import { AgentError } from '../../errors.ts'
import type { SessionSnapshot } from '../log/read-session.ts'

/** Refuses to change a session whose run has not ended, and says what it waits for and how that is answered. */
export function checkNoOpenRun(id: string, { open, state }: SessionSnapshot): void {
  if (open === undefined) return
  const pending = open.phase === 'suspended' && state !== undefined ? pendingOf(state) : []
  const left = pending.filter((each) => !Object.hasOwn(open.given, each.id))
  const why =
    left.length === 0
      ? `has a run that has not ended, and cannot be changed before it has. Go on with agent.resume('${id}').`
      : `waits for ${asked(left)}, and cannot be changed before that is answered. ` +
        `To say no: hookloop deny '${left[0]!.id}', or answerApproval(store, { session: '${id}', approval, answer: { block: 'why' } }); ` +
        `then go on with agent.resume('${id}').`
  throw new AgentError('STATE_SUSPENDED', `The session "${id}" ${why}`, {
    value: left.length === 0 ? id : left.map((each) => each.id),
  })
}

/** Refuses to touch what was said in a session that somebody has suspended, to go on with it later. */
export function checkNotSuspended(id: string, { isSuspended }: SessionSnapshot): void {
  if (!isSuspended) return
  throw new AgentError(
    'STATE_SUSPENDED',
    `The session "${id}" is suspended. Take it up again first, with agent.session('${id}').resume().`,
    { value: id },
  )
}

function asked([first, ...others]: readonly Approval[]): string {
  const what = `an answer about the call of "${first!.toolCall.name}"`
  return others.length === 0 ? what : `${what}, and ${others.length} more`
}
