import { AgentState } from '../state/agent-state.ts'
import { List } from '../state/list.ts'
import { textMessage, type Message } from '../state/message.ts'
import { AgentError, messageOf, toAgentError } from '../../errors.ts'
import type { FactValues } from '../hooks/base-context.ts'
import { passes } from '../effects/journal.ts'
import type { Invocation } from '../hooks/invocation.ts'
import type { InferOptions } from '../hooks/infer.ts'
import { isFatal } from '../hooks/run-hooks.ts'
import { fireTrigger } from '../context/fire-trigger.ts'
import type { RunContext } from '../context/run-context.ts'

/** The first line of a summary. It is the first message of a compacted conversation. */
export const SUMMARY_WORDS = 'Summary of the conversation up to here:'

type Requested = NonNullable<Invocation['compaction']>

/**
 * Replaces all but the latest messages with a summary: `beforeCompaction` on the messages to summarize, the summary,
 * `afterCompaction` on the new conversation. If a hook fails or blocks, the conversation does not change and the run
 * continues.
 */
export async function compactConversation(run: RunContext, asked: Requested): Promise<void> {
  const { state } = run
  const { requested = false } = asked
  try {
    const { going, staying } = partition(state.messages, asked)
    if (going.length === 0) throw new Skipped('there is nothing to summarize')
    const before = await fire(run, 'beforeCompaction', { messages: Object.freeze(going), requested })
    const messages = before['messages'] as readonly Message[]
    if (messages.length === 0) throw new Skipped('hooks left nothing to summarize')
    const summary = await summarize(run, asked, messages)
    const shorter = Object.freeze([textMessage('user', `${SUMMARY_WORDS}\n\n${summary}`), ...staying])
    const after = await fire(run, 'afterCompaction', { messages: shorter, requested, summary })
    replace(run, asked, { summary, messages: after['messages'] as readonly Message[] })
  } catch (thrown) {
    if (passes(thrown)) throw thrown
    const error = thrown
    // State changes of hooks are dropped as well: they may say that the compaction was done.
    run.state = state
    if (error instanceof AgentError && isFatal(error)) return run.fail(error, 'beforeCompaction')
    const message = `The conversation is not compacted: ${messageOf(error)}`
    run.noteLoop('beforeCompaction', {
      decision: 'skipped',
      message,
      ...(!(error instanceof Skipped) && {
        error: messageOf(error),
        warnings: [{ code: 'COMPACTION_FAILED', message }],
      }),
    })
  }
}

class Skipped extends Error {}

/** The messages to summarize and those to keep. A call and its results stay together. */
function partition(all: readonly Message[], { keep, pin }: Requested): { going: Message[]; staying: Message[] } {
  const cut = cutAt(all, keep)
  const pinned = pin === undefined ? new Set<number>() : pinnedBefore(all, cut, pin)
  const front = all.slice(0, cut)
  return {
    going: front.filter((_, i) => !pinned.has(i)),
    staying: [...front.filter((_, i) => pinned.has(i)), ...all.slice(cut)],
  }
}

/** The index of the first message to keep: before the call of every result that is kept. */
export function cutAt(messages: readonly Message[], keep: number): number {
  let cut = Math.max(0, messages.length - keep)
  const wanted = new Set<string>() // results to keep whose calls were not found yet, going backwards
  let passed = new Set<string>() // the same for results before the cut
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

/** With a pinned message, the message with its results or calls is pinned as well. */
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

/** Fires one of the two triggers. Throws if a hook fails or a guard blocks. */
async function fire(
  run: RunContext,
  trigger: 'beforeCompaction' | 'afterCompaction',
  facts: FactValues,
): Promise<FactValues> {
  const { facts: used = facts, blocked } = (await fireTrigger(run, trigger, facts)) ?? {}
  if (blocked !== undefined) throw new Skipped(`"${blocked.by}" blocked it: ${blocked.message}`)
  return used
}

/** The summary of the hook that requested the compaction. Its model calls are made in the name of that hook. */
async function summarize(run: RunContext, { by, summarize }: Requested, messages: readonly Message[]): Promise<string> {
  const trigger = 'beforeCompaction'
  const inference = run.inferFor({ hook: by, mode: 'transform', trigger, call: undefined })
  const key = run.effects.keyOf({ step: run.step, kind: 'timeout', trigger, hook: by, n: 'summary' })
  const infer = (options: InferOptions): Promise<never> => inference.infer(options) as Promise<never>
  let summary: unknown
  try {
    const work = Promise.resolve(summarize({ messages, infer, signal: run.signal }))
    summary = await run.effects.withTimeout(work, { ms: Infinity, key })
  } catch (thrown) {
    await inference.close('threw')
    throw thrown
  }
  await inference.close('returned')
  if (typeof summary === 'string' && summary.trim() !== '') return summary
  throw toAgentError(new Error(`the summary is ${summary === '' ? 'empty' : 'not a string'}`), 'HOOK_FAILED')
}

function replace(
  run: RunContext,
  { by }: Requested,
  { summary, messages }: { readonly summary: string; readonly messages: readonly Message[] },
): void {
  const [before, after] = [run.state.messages.length, messages.length]
  run.state = AgentState.patch(run.state, { messages: List.from(messages) })
  const message = `${before} messages became ${after}, requested by "${by}"`
  run.noteLoop('afterCompaction', { decision: 'compacted', message })
  run.effects.emit?.({ type: 'compacted', step: run.step, at: run.now, by, before, after, summary })
}
