import { randomBytes } from 'node:crypto'
import { changeResponse, type InferenceResponse } from '../data/inference.ts'
import { isJsonObject, type Json, type JsonObject } from '../data/json.ts'
import { textMessage, toInput, toMessage, type Message } from '../data/message.ts'
import { AgentError, messageOf } from '../errors.ts'
import { Context, type Vote } from '../hooks/draft.ts'
import type { HookOutcome, StateChange } from '../hooks/outcome.ts'

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
  readonly stop?: boolean | string
  /** Asks for another step; a text is what the model is told. */
  readonly continue?: boolean | string
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
export function readOutcome(answer: unknown, ctx: Context, by: string): HookOutcome {
  if (!isJsonObject(answer)) throw invalid('It did not answer with a JSON object', answer)
  for (const [key, value] of Object.entries(answer)) {
    const check = fields[key as keyof typeof fields] as ((value: Json) => boolean) | undefined
    if (check === undefined || !Object.hasOwn(fields, key)) throw invalid(`"${key}" is no part of an outcome`, answer)
    if (!check(value)) throw invalid(`"${key}" cannot be ${brief(value)}`, answer)
  }
  const given = answer as ActionOutcome
  const { reason } = given
  const decision = decisions[given.decision ?? 'none']
  const votes = votesOf(given)
  const state = stateOf(given, by)
  return {
    ...(decision !== undefined && { decision }),
    ...(decision !== undefined && reason !== undefined && { message: reason }),
    ...(votes.length > 0 && { votes }),
    ...changeOf(given, ctx),
    ...(Object.keys(state).length > 0 && { state }),
  }
}

const fields = {
  decision: (value) => typeof value === 'string' && Object.hasOwn(decisions, value) && value !== 'none',
  reason: isText,
  stop: (value) => typeof value === 'boolean' || isText(value),
  continue: (value) => typeof value === 'boolean' || isText(value),
  updatedInput: () => true,
  updatedOutput: () => true,
  additionalContext: isText,
  messages: (value) => Array.isArray(value),
  metadata: isJsonObject,
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

function votesOf({ decision, reason, stop, continue: goOn }: ActionOutcome): readonly Vote[] {
  const votes: Vote[] = []
  const words = (said: boolean | string | undefined, otherwise: string): string =>
    typeof said === 'string' && said !== '' ? said : (reason ?? otherwise)
  if (decision === 'stop' || (stop !== undefined && stop !== false)) {
    votes.push({ decision: 'forbidContinuation', reason: 'stopRequested', message: words(stop, 'It says stop.') })
  }
  if (decision === 'continue' || (goOn !== undefined && goOn !== false)) {
    const message = words(goOn, 'There is more to do.')
    votes.push({ decision: 'requestContinuation', reason: 'completed', message })
  }
  return votes
}

function changeOf(given: ActionOutcome, ctx: Context): Partial<HookOutcome> {
  const { trigger } = ctx
  const { updatedInput, updatedOutput } = given
  const change: { -readonly [K in keyof HookOutcome]?: HookOutcome[K] } = {}
  if (updatedInput !== undefined) {
    if (trigger === 'onUserInput') change.input = checked(() => toInput(updatedInput), given)
    else change.args = updatedInput
  }
  if (updatedOutput !== undefined) {
    if (trigger !== 'afterInference') change.output = updatedOutput
    else if (typeof updatedOutput !== 'string') throw invalid('"updatedOutput" of an answer must be a text', given)
    else
      change.response = changeResponse(Context.draftOf(ctx).facts['response'] as InferenceResponse, {
        text: updatedOutput,
      })
  }
  return change
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

/**
 * Words from outside between two lines that they cannot have written themselves, because the number in them is made up
 * now: what stands between them is data, whatever it says.
 */
export function contextMessage(text: string, by: string): Message {
  const mark = randomBytes(6).toString('hex')
  const cut = text.length > MAX_CONTEXT ? `${text.slice(0, MAX_CONTEXT)}… (${text.length} characters)` : text
  return textMessage('user', `[context ${mark} from hook "${by.replaceAll('"', "'")}"]\n${cut}\n[end ${mark}]`)
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
