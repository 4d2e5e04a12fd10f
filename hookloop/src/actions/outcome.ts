import { createHash } from 'node:crypto'
import { changeResponse, type InferenceResponse } from '../state/inference.ts'
import { isJsonObject, type Json, type JsonObject } from '../state/json.ts'
import { textMessage, toInput, toMessage, type Message } from '../state/message.ts'
import { AgentError, messageOf } from '../errors.ts'
import { BaseContext, type Vote } from '../hooks/base-context.ts'
import type { HookOutcome } from '../hooks/outcome.ts'
import type { StateChange } from '../state/state-diff.ts'
import { specOf, type HookTrigger } from '../hooks/triggers.ts'

/**
 * What an action answers with, as JSON: the same for a command, a request and a model. Everything may be missing, and
 * nothing at all is no opinion. What is not in this list is refused, because whoever wrote it relied on it.
 */
export type ActionOutcome = {
  /** About the value. `deny` is `block`, `ask_user` is `ask`; `stop` and `continue` are about the run. */
  readonly decision?: 'block' | 'deny' | 'ask' | 'ask_user' | 'allow' | 'stop' | 'continue'
  /** Why: told to the model, to whoever is asked, and kept in the ledger. */
  readonly reason?: string
  /** Ends the run; a text says why. */
  readonly stop?: true | string
  /** Asks for another step; a text is what the model is told. */
  readonly continue?: true | string
  /** Arguments at `beforeToolUse`, all of them; what the user says at `onUserInput`. */
  readonly updatedInput?: Json
  /** The result at `afterToolUse`, the answer at `afterInference`, the output at `onSubagentStop`. */
  readonly updatedOutput?: Json
  /** Told to the model beside everything else, as data and not as an instruction of the system. */
  readonly additionalContext?: string
  /** Messages of the role `user`, or texts, which are added to the conversation. */
  readonly messages?: readonly (string | Message)[]
  readonly metadata?: JsonObject
}

const MAX_CONTEXT = 10_000

/** An answer as an outcome, or an error that says what is wrong with it. */
export function readOutcome(answer: unknown, ctx: BaseContext, by: string): HookOutcome {
  if (!isJsonObject(answer)) throw invalid('It did not answer with a JSON object', answer)
  for (const [key, value] of Object.entries(answer)) {
    const check: ((value: Json) => boolean) | undefined = Object.hasOwn(fields, key)
      ? fields[key as keyof typeof fields]
      : undefined
    if (check === undefined) throw invalid(`"${key}" is no part of an outcome`, answer)
    if (!check(value)) throw invalid(`"${key}" cannot be ${brief(value)}`, answer)
  }
  const given = answer as ActionOutcome
  const { reason } = given
  const decision = decisions[given.decision ?? 'none']
  const votes = votesOf(given)
  if (reason !== undefined && decision === undefined && votes.length === 0) {
    throw invalid('There is a "reason" and nothing that it is the reason of', answer)
  }
  const state = stateOf(given, by)
  return {
    ...(decision !== undefined && { decision }),
    ...(decision !== undefined && reason !== undefined && { message: reason }),
    ...(votes.length > 0 && { votes }),
    ...changeOf(given, ctx),
    ...(Object.keys(state).length > 0 && { state }),
  }
}

/** A no, in the way a trigger has one. Where a run is about to stop, it is a no to that. */
export function noAt(trigger: HookTrigger, reason: string): ActionOutcome {
  if (trigger === 'onStop') return { continue: reason }
  return specOf(trigger).no === 'forbid' ? { stop: reason } : { decision: 'block', reason }
}

const fields = {
  decision: (value) => isText(value) && value !== 'none' && Object.hasOwn(decisions, value),
  reason: isText,
  stop: isYes,
  continue: isYes,
  updatedInput: () => true,
  updatedOutput: () => true,
  additionalContext: isText,
  messages: (value) => Array.isArray(value),
  metadata: (value) => isJsonObject(value) && Object.keys(value).every(isFree),
} as const satisfies { readonly [K in keyof ActionOutcome]-?: (value: Json) => boolean }

const decisions = {
  block: 'block',
  deny: 'block',
  ask: 'ask',
  ask_user: 'ask',
  allow: 'allow',
  stop: undefined,
  continue: undefined,
  none: undefined,
} as const

function isText(value: Json): value is string {
  return typeof value === 'string'
}

/** A `false` would say nothing, and elsewhere `continue: false` means the end. */
function isYes(value: Json): boolean {
  return value === true || isText(value)
}

/** What the runtime keeps for itself among the metadata, nobody else writes. */
function isFree(key: string): boolean {
  return key !== '__proto__' && !key.startsWith('hookloop.')
}

function votesOf({ decision, reason, stop, continue: goOn }: ActionOutcome): readonly Vote[] {
  const votes: Vote[] = []
  const words = (said: true | string | undefined, otherwise: string): string =>
    typeof said === 'string' && said !== '' ? said : (reason ?? otherwise)
  if (decision === 'stop' || stop !== undefined) {
    votes.push({ decision: 'forbidContinuation', reason: 'stopRequested', message: words(stop, 'It says stop.') })
  }
  if (decision === 'continue' || goOn !== undefined) {
    const message = words(goOn, 'There is more to do.')
    votes.push({ decision: 'requestContinuation', reason: 'completed', message })
  }
  return votes
}

function changeOf(given: ActionOutcome, ctx: BaseContext): Partial<HookOutcome> {
  const { trigger } = ctx
  const { updatedInput, updatedOutput } = given
  const change: { -readonly [K in keyof HookOutcome]?: HookOutcome[K] } = {}
  if (updatedInput !== undefined) {
    if (trigger === 'onUserInput') change.input = checked(() => toInput(updatedInput), given)
    else change.args = updatedInput
  }
  if (updatedOutput === undefined) return change
  if (trigger !== 'afterInference') return { ...change, output: updatedOutput }
  if (!isText(updatedOutput)) throw invalid('"updatedOutput" of an answer must be a text', given)
  const { response } = BaseContext.draftOf(ctx).facts as { readonly response: InferenceResponse }
  return { ...change, response: changeResponse(response, { text: updatedOutput }) }
}

function stateOf({ metadata, additionalContext, messages }: ActionOutcome, by: string): StateChange {
  const appended: Message[] = (messages ?? []).map((each) => {
    const message = checked(() => toMessage(each, 'message'), messages as Json)
    if (message.role === 'user') return message
    throw invalid('"messages" may only be of the role "user": what an action says is not an instruction', each)
  })
  if (additionalContext !== undefined && additionalContext.trim() !== '') {
    appended.push(contextMessage(additionalContext, by))
  }
  return { ...(appended.length > 0 && { appended }), ...(metadata !== undefined && { metadata }) }
}

/** Words from outside as a message: what stands in it is data, whatever it says. */
export function contextMessage(text: string, by: string): Message {
  const cut = text.length > MAX_CONTEXT ? `${text.slice(0, MAX_CONTEXT)}… (${text.length} characters)` : text
  return textMessage('user', fenced(cut, `context from hook "${by.replaceAll('"', "'")}"`))
}

/**
 * A text between two lines that it cannot hold itself, because the number in them is made from it. No chance is involved,
 * so a replay gives the same.
 */
export function fenced(text: string, title: string): string {
  const mark = createHash('sha256').update(title).update(text).digest('hex').slice(0, 16)
  return `[${mark} ${title.replaceAll(/\s+/g, ' ')}]\n${text}\n[end ${mark}]`
}

function checked<T>(read: () => T, value: unknown): T {
  try {
    return read()
  } catch (error) {
    throw invalid(messageOf(error).replace(/\.$/, ''), value)
  }
}

function brief(value: Json): string {
  const text = JSON.stringify(value)
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}

function invalid(why: string, value: unknown): AgentError {
  return new AgentError('HOOK_OUTCOME_INVALID', `${why}.`, { value })
}

/** For those who publish what an outcome is. */
export const outcomeFields: readonly string[] = Object.freeze(Object.keys(fields))
export const outcomeDecisions: readonly string[] = Object.freeze(
  Object.keys(decisions).filter((each) => each !== 'none'),
)
