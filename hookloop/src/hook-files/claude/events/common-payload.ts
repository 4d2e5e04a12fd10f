import { SUBAGENT_KEY, type AgentState } from '../../../core/state/agent-state.ts'
import { BaseContext } from '../../../core/hooks/base-context.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../values/json.ts'
import type { ClaudeEvent } from './claude-events.ts'
import type { Transcripts } from './transcripts.ts'

export type Payload = {
  readonly event: ClaudeEvent
  /** The JSON on standard input. */
  readonly input: JsonObject
  /** The values that its matcher is tested with: several if a tool has several names. */
  readonly matched: readonly string[]
  /** Tells several payloads of one trigger apart in the records. */
  readonly part?: string
}

export type PayloadOptions = {
  readonly cwd: string
  readonly transcripts: Transcripts
  /** Whether a subagent, by its call, continues because a hook requested it. */
  readonly isContinued?: (agentId: string, call: string) => boolean
  /** The arguments of the call, if a hook has changed them. */
  readonly args?: Json | undefined
}

/** Creates a payload: the fields of its event, and the values for its matcher. */
export type MakePayload = (event: ClaudeEvent, input: JsonObject, ...matched: readonly string[]) => Payload

export const permissionMode = { permission_mode: 'default' }

/** The metadata key with the id of the session and its active skills. */
export const SESSION_KEY = 'hookloop.claude'

export function makerFor(ctx: BaseContext, options: PayloadOptions): MakePayload {
  return makerOf(commonFields(ctx.state, sessionOf(ctx), options))
}

export function makerOf(common: JsonObject): MakePayload {
  return (event, input, ...matched) => ({ event, input: { ...common, hook_event_name: event, ...input }, matched })
}

/** The fields of every payload. */
export function commonFields(
  state: AgentState,
  session: string,
  { cwd, transcripts }: Pick<PayloadOptions, 'cwd' | 'transcripts'>,
): JsonObject {
  const subagent = subagentOf(state)
  return {
    session_id: session,
    transcript_path: transcripts.pathFor(state, session),
    cwd,
    ...(state.execution !== undefined && { prompt_id: state.execution.id }),
    ...(subagent !== undefined && { agent_id: state.agentId, agent_type: subagent }),
  }
}

/** The id of the session, or of the agent if there is no session. */
export function sessionOf(ctx: BaseContext): string {
  const named = BaseContext.draftOf(ctx).facts['sessionId']
  return typeof named === 'string' ? named : sessionIn(ctx.state)
}

export function sessionIn({ metadata, agentId, parentId }: AgentState): string {
  const stored = metadata[SESSION_KEY]
  if (isJsonObject(stored) && typeof stored['session'] === 'string') return stored['session']
  return parentId ?? agentId
}

/** The name of the agent if it is a subagent. */
export function subagentOf({ metadata, parentId }: AgentState): string | undefined {
  const who = metadata[SUBAGENT_KEY]
  if (parentId === undefined || !isJsonObject(who)) return undefined
  return typeof who['name'] === 'string' ? who['name'] : ''
}
