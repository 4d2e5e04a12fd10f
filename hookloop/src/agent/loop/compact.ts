import { AgentState } from '../../state/agent-state.ts'
import { List } from '../../state/list.ts'
import { textMessage, type Message } from '../../state/message.ts'
import { AgentError, messageOf, toAgentError } from '../../errors.ts'
import type { FactValues } from '../../hooks/base-context.ts'
import { Invocation } from '../../hooks/invocation.ts'
import { HookFailure, isFatal } from '../../hooks/run-hooks.ts'
import type { RunContext } from './run-context.ts'

/** What a summary begins with. It stands in front of the conversation, as something the model is told. */
export const SUMMARY_WORDS = 'Summary of the conversation up to here:'

type Asked = NonNullable<Invocation['compaction']>

/**
 * Puts a summary in the place of all but the latest messages: `beforeCompaction` on what is to go, the summary,
 * `afterCompaction` on what is to be. Whatever fails or is forbidden on the way, the conversation stays as it is and the
 * run goes on.
 */
export async function compact(run: RunContext, asked: Asked): Promise<void> {
  const { state } = run
  const { requested = false } = asked
  try {
    const { going, staying } = parted(state.messages, asked)
    if (going.length === 0) throw new Skipped('there is nothing to sum up')
    const before = await fire(run, 'beforeCompaction', { messages: List.from(going), requested })
    const messages = before['messages'] as List<Message>
    if (messages.length === 0) throw new Skipped('hooks left nothing to sum up')
    const summary = await summarize(run, asked, messages)
    const shorter = List.from([textMessage('user', `${SUMMARY_WORDS}\n\n${summary}`), ...staying])
    const after = await fire(run, 'afterCompaction', { messages: shorter, requested, summary })
    replace(run, asked, { summary, messages: after['messages'] as List<Message> })
  } catch (thrown) {
    const error = thrown instanceof HookFailure ? thrown.error : thrown
    // What hooks put into the state on the way goes with it, or they would take for done what was not.
    run.state = AgentState.patch(state, { execution: run.execution })
    if (error instanceof AgentError && isFatal(error)) return run.fail(error, 'beforeCompaction')
    const isOwn = error instanceof Skipped
    run.noteLoop('beforeCompaction', {
      decision: 'skipped',
      message: `The conversation is not compacted: ${messageOf(error)}`,
      ...(!isOwn && { error: messageOf(error) }),
    })
  }
}

class Skipped extends Error {}

/** What goes and what stays. A call and its results do the one or the other together. */
function parted(messages: List<Message>, { keep, pin }: Asked): { going: Message[]; staying: Message[] } {
  const all = messages.slice()
  const cut = cutAt(all, keep)
  const pinned = pin === undefined ? new Set<number>() : pinnedBefore(all, cut, pin)
  const front = all.slice(0, cut)
  return {
    going: front.filter((_, i) => !pinned.has(i)),
    staying: [...front.filter((_, i) => pinned.has(i)), ...all.slice(cut)],
  }
}

/** Where the part begins that stays: before the first call that one of its results belongs to. */
export function cutAt(messages: readonly Message[], keep: number): number {
  let cut = Math.max(0, messages.length - keep)
  const wanted = new Set<string>() // results that stay and whose calls have not been met yet, going backwards
  let passed = new Set<string>() // the same of results that go, unless the cut moves before them
  for (let i = messages.length - 1; i >= 0 && (i >= cut || wanted.size > 0); i--) {
    const { content } = messages[i]!
    for (const part of content) {
      if (part.type === 'tool-result') (i >= cut ? wanted : passed).add(part.toolCallId)
    }
    const calls = content.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : []))
    if (i < cut && calls.some((id) => wanted.has(id))) {
      cut = i
      for (const id of passed) wanted.add(id)
      passed = new Set()
    }
    for (const id of calls) {
      wanted.delete(id)
      passed.delete(id)
    }
  }
  return cut
}

/** A pinned message takes along the message with its results, or the one with its calls. */
function pinnedBefore(messages: readonly Message[], cut: number, pin: (message: Message) => boolean): Set<number> {
  const pinned = new Set<number>()
  for (let i = 0; i < cut; i++) if (pin(messages[i]!)) pinned.add(i)
  for (const i of pinned) {
    const { role } = messages[i]!
    if (role === 'assistant' && messages[i + 1]?.role === 'tool') pinned.add(i + 1)
    if (role === 'tool' && messages[i - 1]?.role === 'assistant') pinned.add(i - 1)
  }
  return pinned
}

/** Fires one of the two triggers. A hook that fails and a guard that says no end the matter. */
async function fire(
  run: RunContext,
  trigger: 'beforeCompaction' | 'afterCompaction',
  facts: FactValues,
): Promise<FactValues> {
  const plan = run.parts.stack.plan(trigger)
  if (plan.empty) {
    void run.fire(trigger, facts) // for shadows
    return facts
  }
  const firing = new Invocation(run, plan, run.state, facts)
  await run.transformOrThrow(firing, plan)
  const used = firing.facts
  await run.judge(firing, plan)
  if (firing.failure !== undefined) throw firing.failure
  if (firing.blocked !== undefined) throw new Skipped(`"${firing.blocked.by}" says no: ${firing.blocked.message}`)
  return used
}

/** What the hook that asked writes, with what it asks of models billed to it. */
async function summarize(run: RunContext, { by, summarize }: Asked, messages: List<Message>): Promise<string> {
  const trigger = 'beforeCompaction'
  const asking = run.asking({ hook: by, mode: 'transform', trigger, key: `${run.place}/${trigger}/${by}/summary` })
  const infer = (asked: Parameters<typeof asking.infer>[0]): Promise<never> => asking.infer(asked) as Promise<never>
  let summary: unknown
  try {
    const writing = Promise.resolve(summarize({ messages, infer, signal: run.signal }))
    summary = await run.outstanding.abortable(writing)
  } catch (thrown) {
    await asking.close('threw')
    throw thrown
  }
  await asking.close('returned')
  if (typeof summary === 'string' && summary.trim() !== '') return summary
  throw toAgentError(new Error(`the summary is ${summary === '' ? 'empty' : 'no text'}`), 'HOOK_FAILED')
}

function replace(
  run: RunContext,
  { by }: Asked,
  { summary, messages }: { readonly summary: string; readonly messages: List<Message> },
): void {
  const [before, after] = [run.state.messages.length, messages.length]
  run.state = AgentState.patch(run.state, { messages })
  const message = `${before} messages became ${after}, at the wish of "${by}"`
  run.noteLoop('afterCompaction', { decision: 'compacted', message })
  run.effects.emit?.({ type: 'compacted', step: run.step, by, before, after, summary })
}
