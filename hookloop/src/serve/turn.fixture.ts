import { z } from 'zod'
import type { Agent } from '../core/agent/agent.ts'
import type { Use } from '../core/agent/capability.ts'
import type { Run } from '../core/agent/run.ts'
import { storeOf } from '../core/agent/agent-parts.ts'
import { tool } from '../core/agent/tool.ts'
import { subagents } from '../capabilities/subagents/subagents.ts'
import { createAgent } from '../create-agent.ts'
import { guard } from '../core/hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../models/scripted.ts'
import { watchSession } from '../sessions/log/watch-session.ts'
import type { AgentEvent } from '../core/state/event.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import type { Answers, Approval } from '../core/state/tool-call.ts'

/** A tool that asks before it pays. */
export const payTool = (onPaid: (to: string) => void = () => undefined) =>
  tool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ to: z.string() }),
    ask: true,
    execute: ({ to }) => {
      onPaid(to)
      return `paid ${to}`
    },
  })

export const look = tool({
  name: 'look',
  description: 'Looks.',
  input: z.object({ at: z.string() }),
  execute: ({ at }, { progress }) => {
    progress(`looking at ${at}`)
    if (at === 'nothing') throw new Error('There is nothing.')
    return { seen: at }
  },
})

export const noSecrets = guard(
  'beforeToolUse',
  (ctx) => (ctx.toolCall.args.at === 'secrets' ? ctx.block('Not those.') : ctx),
  { name: 'no-secrets', tool: look },
)

/** The subagent `clerk`, which has a tool. `spawn` is the call that starts it. */
export function clerkOf(pay: Use, turns: readonly ScriptedTurn[]): Use {
  const agent = createAgent({ name: 'clerk', model: scriptedModel(turns), use: [pay] })
  return subagents({ agents: { clerk: { agent, description: 'Pays.' } } })
}

export const spawn = { name: 'spawn_subagent', args: { subagent: 'clerk', prompt: 'Pay Bob.' } }

/** A call of `pay`. */
export const paying = (to: string) => ({ name: 'pay', args: { to } })

export type Played = {
  readonly events: readonly AgentEvent[]
  readonly run: Run
  /** The events as they are read when another turn has been sent. */
  readonly earlier: () => Promise<readonly AgentEvent[]>
}

/** The events of a turn. As long as it waits, `answer` is asked. */
export async function play(
  agent: Agent,
  answer: (pending: readonly Approval[]) => Answers = () => ({}),
): Promise<Played> {
  const events: AgentEvent[] = []
  let live = agent.stream('Go.', { session: 's', turn: 'm1' })
  for (;;) {
    for await (const event of live) events.push({ ...event, run: 'run-1', seq: events.length + 1 })
    const run = await live.run
    const answers = run.status === 'suspended' ? answer(run.pending) : {}
    if (Object.keys(answers).length === 0) return { events, run, earlier: () => earlierEvents(agent) }
    live = agent.resumeStream('s', { answers })
  }
}

async function earlierEvents(agent: Agent): Promise<readonly AgentEvent[]> {
  const store = storeOf(agent) as SessionStore
  await agent.run('Next.', { session: 's' })
  const events: AgentEvent[] = []
  for await (const event of watchSession(store, 's', { follow: false })) events.push(event)
  return events.flatMap((event) => (event.run === events[0]!.run ? [{ ...event, run: 'run-1' }] : []))
}

/** Gives each question this answer. */
export const answering =
  (answer: Answers[string]) =>
  (pending: readonly Approval[]): Answers =>
    Object.fromEntries(pending.map(({ id }) => [id, answer]))

/** Plain JSON, without what only a stream has. */
export function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, each: unknown) => (key === 'rawInput' ? undefined : each)))
}
