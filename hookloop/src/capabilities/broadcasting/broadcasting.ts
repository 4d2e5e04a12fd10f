import type { Capability } from '../../agent/capability.ts'
import { checkKnown, checkWhole, definedOptions, invalidOption } from '../../agent/options.ts'
import type { AgentState } from '../../data/agent-state.ts'
import type { ObserveContext } from '../../hooks/context.ts'
import { observe } from '../../hooks/hook.ts'
import type { PlainTrigger } from '../../hooks/triggers.ts'
import { presets, type Preset } from './envelopes.ts'
import { Mailbox, type Channel, type Envelope } from './mailbox.ts'

export type { Channel, Envelope } from './mailbox.ts'

export type BroadcastingOptions = {
  /** Where envelopes go, one or several. Each has a queue of its own. */
  readonly channel: Channel | readonly Channel[]
  /** `minimal`: how executions go. `standard`: steps, calls and answers too. `debug`: arguments, outputs and decisions too. */
  readonly preset?: Preset
  /** Stands in every envelope: the session that the run belongs to, or where to find it in the state. */
  readonly sessionId?: string | ((state: AgentState) => string | undefined)
  /** The last word on what is told: another envelope, or nothing at all. One that it fails on is not told. */
  readonly redact?: (envelope: Envelope) => Envelope | undefined
  /** Envelopes that wait for a channel. More than that are dropped, and counted. */
  readonly maxQueue?: number
  readonly publishTimeoutMs?: number
  /** Characters of a text, of arguments or of an output. */
  readonly maxChars?: number
}

export const broadcastingPolicy = Object.freeze({
  channel: undefined,
  preset: 'standard',
  sessionId: undefined,
  redact: undefined,
  maxQueue: 1_000,
  publishTimeoutMs: 5_000,
  maxChars: 4_000,
})

/** Tells channels what runs do, while they do it. A channel that is slow or fails costs envelopes, never a run. */
export function broadcasting(options: BroadcastingOptions): Capability {
  checkKnown('broadcasting', options, Object.keys(broadcastingPolicy))
  const policy = { ...broadcastingPolicy, ...definedOptions(options) }
  const { preset, sessionId, redact, maxChars } = policy
  checkWhole('broadcasting', policy, ['maxQueue', 'publishTimeoutMs', 'maxChars'])
  if (!Object.hasOwn(presets, preset)) {
    throw invalidOption('broadcasting', `"preset" is one of ${Object.keys(presets).join(', ')}`, preset)
  }
  const mailboxes = channelsOf(policy.channel).map((channel) => new Mailbox(channel, policy))
  const telling = presets[preset]
  const tell = observe(
    Object.keys(telling) as PlainTrigger[],
    (ctx: ObserveContext<PlainTrigger>): void => {
      const session = typeof sessionId === 'function' ? sessionId(ctx.state) : sessionId
      const { agentId, execution } = ctx.state
      for (const news of telling[ctx.trigger]!(ctx as never, maxChars)) {
        const envelope: Envelope = Object.freeze({
          type: news.type,
          ...(session !== undefined && { sessionId: session }),
          executionId: execution?.id ?? '',
          agentId,
          at: ctx.now,
          payload: news.payload,
        })
        const told = redact === undefined ? envelope : redact(envelope)
        if (told !== undefined) for (const mailbox of mailboxes) mailbox.put(told)
      }
    },
    { name: 'broadcasting.tell' },
  )
  const what = { minimal: 'nothing that was said', standard: 'what the model says', debug: 'arguments and outputs too' }
  return { name: 'broadcasting', hooks: [tell], notes: [`Broadcasting: ${preset}, with ${what[preset]}.`] }
}

function channelsOf(given: unknown): readonly Channel[] {
  const channels: readonly unknown[] = Array.isArray(given) ? given : [given]
  const isChannel = (each: unknown): each is Channel =>
    typeof (each as Partial<Channel> | undefined)?.publish === 'function'
  if (channels.length > 0 && channels.every(isChannel)) return channels
  throw invalidOption('broadcasting', '"channel" must have a method publish(envelope), or be a list of such', given)
}
