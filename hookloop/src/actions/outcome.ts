import { createHash } from 'node:crypto'
import {
  changeResponse,
  factsOf,
  textMessage,
  toInput,
  toMessage,
  triggers,
  type ActionContext,
  type FailedAction,
  type HookOutcome,
  type HookTrigger,
  type InferenceResponse,
  type Message,
  type StateChange,
  type Vote,
} from '../plugin.ts'
import { isJsonObject, parseExactly, type Json, type JsonObject } from '../values/json.ts'
import { AgentError, messageOf, clause } from '../errors.ts'
import { redactor, secretPatterns } from '../values/secrets.ts'

/**
 * The JSON that an action answers with, whether it is a command, a URL, a model or an agent. All fields are optional, and
 * an empty object is no opinion. An unknown field is an error: its author relies on it.
 *
 * @example
 * echo '{ "decision": "block", "reason": "Force pushes are not allowed." }'
 */
export type ActionOutcome = {
  /** `deny` is the same as `block`, and `ask_user` the same as `ask`. `stop` and `continue` decide about the run. */
  readonly decision?: 'block' | 'deny' | 'ask' | 'ask_user' | 'allow' | 'stop' | 'continue'
  /** Why. The model and the approver get it, and it is stored in the ledger. */
  readonly reason?: string
  /** Ends the run; a string is the reason. */
  readonly stop?: true | string
  /** Requests another step; the model receives the string. */
  readonly continue?: true | string
  /** The new arguments at `beforeToolUse`, all of them; the new input at `onUserInput`. */
  readonly updatedInput?: Json
  /** The new result at `afterToolUse`, answer at `afterInference`, or output at `onSubagentStop`. */
  readonly updatedOutput?: Json
  /** Additional text for the model, as data and not as a system instruction. */
  readonly additionalContext?: string
  /** Messages with the role `user`, or strings, that are added to the conversation. */
  readonly messages?: readonly (string | Message)[]
  readonly metadata?: JsonObject
}

const MAX_CONTEXT = 10_000

/** Reads the answer of an action. Throws an error that says what is wrong with an invalid one. */
export function readOutcome(answer: unknown, ctx: ActionContext, by: string): HookOutcome {
  if (!isJsonObject(answer)) throw invalid('The answer is not a JSON object', answer)
  for (const [key, value] of Object.entries(answer)) {
    const check: ((value: Json) => boolean) | undefined = Object.hasOwn(fields, key)
      ? fields[key as keyof typeof fields]
      : undefined
    if (check === undefined)
      throw invalid(`The answer has an unknown field "${key}". Known: ${Object.keys(fields).join(', ')}`, answer)
    if (!check(value)) throw invalid(`"${key}" of the answer cannot be ${brief(value)}`, answer)
  }
  const given = answer as ActionOutcome
  const { reason } = given
  const decision = given.decision && decisions[given.decision]
  const votes = votesOf(given)
  if (reason !== undefined && decision === undefined && votes.length === 0) {
    throw invalid('The answer has a "reason" without a decision', answer)
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

/** The outcome that blocks at a trigger. At `onStop` it prevents the stop. */
export function blockAt(trigger: HookTrigger, reason: string): ActionOutcome {
  if (trigger === 'onStop') return { continue: reason }
  const spec = triggers[trigger]
  const forbids = 'onGuardFailure' in spec && spec.onGuardFailure === 'forbid'
  return forbids ? { stop: reason } : { decision: 'block', reason }
}

const fields = {
  decision: (value) => isText(value) && Object.hasOwn(decisions, value),
  reason: isText,
  stop: isRequest,
  continue: isRequest,
  updatedInput: () => true,
  updatedOutput: () => true,
  additionalContext: isText,
  messages: (value) => Array.isArray(value),
  metadata: (value) => isJsonObject(value) && Object.keys(value).every(isWritable),
} as const satisfies { readonly [K in keyof ActionOutcome]-?: (value: Json) => boolean }

const decisions = {
  block: 'block',
  deny: 'block',
  ask: 'ask',
  ask_user: 'ask',
  allow: 'allow',
  stop: undefined,
  continue: undefined,
} as const

function isText(value: Json): value is string {
  return typeof value === 'string'
}

/** `false` is invalid: it would have no meaning, and for Claude Code `continue: false` ends the run. */
function isRequest(value: Json): boolean {
  return value === true || isText(value)
}

/** Keys of the runtime cannot be written. */
function isWritable(key: string): boolean {
  return key !== '__proto__' && !key.startsWith('hookloop.')
}

function votesOf({ decision, reason, stop, continue: again }: ActionOutcome): readonly Vote[] {
  const votes: Vote[] = []
  const textOr = (given: true | string | undefined, otherwise: string): string =>
    typeof given === 'string' && given !== '' ? given : (reason ?? otherwise)
  if (decision === 'stop' || stop !== undefined) {
    votes.push({
      decision: 'forbidContinuation',
      reason: 'stopRequested',
      message: textOr(stop, 'A hook stopped the run.'),
    })
  }
  if (decision === 'continue' || again !== undefined) {
    const message = textOr(again, 'A hook requested another step.')
    votes.push({ decision: 'requestContinuation', reason: 'completed', message })
  }
  return votes
}

function changeOf(given: ActionOutcome, ctx: ActionContext): Partial<HookOutcome> {
  const { trigger } = ctx
  const { updatedInput, updatedOutput } = given
  const change: { -readonly [K in keyof HookOutcome]?: HookOutcome[K] } = {}
  if (updatedInput !== undefined) {
    if (trigger === 'onUserInput') change.input = checked(() => toInput(updatedInput), given)
    else change.args = updatedInput
  }
  if (updatedOutput === undefined) return change
  if (trigger !== 'afterInference') return { ...change, output: updatedOutput }
  if (!isText(updatedOutput)) throw invalid('"updatedOutput" at afterInference must be a string', given)
  const { response } = factsOf(ctx) as { readonly response: InferenceResponse }
  return { ...change, response: changeResponse(response, { text: updatedOutput }) }
}

function stateOf({ metadata, additionalContext, messages }: ActionOutcome, by: string): StateChange {
  const appended: Message[] = (messages ?? []).map((each) => {
    const message = checked(() => toMessage(each, 'message'), messages as Json)
    if (message.role === 'user') return message
    throw invalid('"messages" can only have the role "user": an action cannot give system instructions', each)
  })
  if (additionalContext !== undefined && additionalContext.trim() !== '') {
    appended.push(contextMessage(additionalContext, by))
  }
  return { ...(appended.length > 0 && { appended }), ...(metadata !== undefined && { metadata }) }
}

/** A message with text from outside the agent, marked as data. */
export function contextMessage(text: string, by: string): Message {
  const cut = text.length > MAX_CONTEXT ? `${text.slice(0, MAX_CONTEXT)}… (${text.length} characters)` : text
  return textMessage('user', fenced(cut, `context from hook "${by.replaceAll('"', "'")}"`))
}

/**
 * A text between two marker lines that it cannot contain itself, because the marker is its hash. It is deterministic, so a
 * replay produces the same text.
 */
export function fenced(text: string, title: string): string {
  const mark = createHash('sha256').update(title).update(text).digest('hex').slice(0, 16)
  return `[${mark} ${title.replaceAll(/\s+/g, ' ')}]\n${text}\n[end ${mark}]`
}

function checked<T>(read: () => T, value: unknown): T {
  try {
    return read()
  } catch (error) {
    throw invalid(clause(messageOf(error)), value)
  }
}

function brief(value: Json): string {
  const text = JSON.stringify(value)
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}

function invalid(why: string, value: unknown): AgentError {
  return new AgentError('HOOK_OUTCOME_INVALID', `${why}.`, {
    value: { how: 'gave an invalid answer', answer: value } satisfies FailedAction & { answer: unknown },
  })
}

export const outcomeDecisions: readonly string[] = Object.freeze(Object.keys(decisions))

/** Parses what a command printed or a server responded with. No text is no opinion. */
export function parseAnswer(text: string, label: string): unknown {
  const trimmed = text.trim()
  if (trimmed === '') return {}
  try {
    return parseExactly(trimmed)
  } catch {
    const message = `The answer of "${label}" is not JSON: ${redact(trimmed.slice(0, 200)) as string}`
    const value: FailedAction = { how: 'did not answer with JSON' }
    throw new AgentError('HOOK_OUTCOME_INVALID', message, { value })
  }
}

/** An action failed. The model gets `how`; `details`, such as the output of a command, stay on this machine. */
export function actionFailed(label: string, how: string, details = ''): AgentError {
  const more = details === '' ? '' : `: ${redact(details) as string}`
  const value: FailedAction = { how }
  return new AgentError('HOOK_FAILED', `"${label}" ${how}${clause(more)}.`, { value })
}

const redact = redactor(secretPatterns)
