import type { Agent, RunOptions } from '../../agent/agent.ts'
import { inputFor } from '../../agent/loop/start.ts'
import { streamRun } from '../../agent/run-stream.ts'
import type { Run } from '../../agent/run.ts'
import { partsOf } from '../../agent/agent-parts.ts'
import { sessionPort } from '../../sessions/session/session.ts'
import type { SessionStore } from '../../sessions/stores/store.ts'
import type { Emit } from '../../state/event.ts'
import type { Message } from '../../state/message.ts'

/** An agent from createAgent() with its sessions in this store. */
export function agentWithStore(agent: Agent<unknown>, store: SessionStore): Agent<unknown> {
  const [parts, port] = [partsOf(agent), sessionPort(store)]
  const run = async (input: string | Message, given: RunOptions = {}, emit?: Emit): Promise<Run> =>
    port.run(parts, inputFor(parts, input), { ...given, ...(emit && { emit }), session: given.session! })
  const resume = (id: string, given: RunOptions = {}, emit?: Emit): Promise<Run> =>
    port.resume(parts, { ...given, ...(emit && { emit }), session: id })
  return Object.freeze({
    ...agent,
    run: (input, given) => (given?.session === undefined ? agent.run(input, given) : run(input, given)),
    stream: (input, given) =>
      given?.session === undefined ? agent.stream(input, given) : streamRun((emit) => run(input, given, emit)),
    resume: (from, given) => (typeof from === 'string' ? resume(from, given) : agent.resume(from, given)),
    resumeStream: (from, given) =>
      typeof from === 'string' ? streamRun((emit) => resume(from, given, emit)) : agent.resumeStream(from, given),
    session: (id) => port.session(parts, id),
  } satisfies Agent<unknown>)
}
