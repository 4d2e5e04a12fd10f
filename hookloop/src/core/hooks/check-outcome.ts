import { AgentError } from '../../errors.ts'
import { continuationDecisions, stopReasons } from '../state/continuation.ts'
import { describeValue, isPlainObject } from '../../values/describe-value.ts'
import { isFinishReason } from '../state/inference.ts'
import { isJsonObject, toJson, type Json, type JsonObject } from '../../values/json.ts'
import { isReplyPart, toInput, toMessage } from '../state/message.ts'
import {
  amount,
  listOf,
  must,
  object,
  oneOf,
  optional,
  present,
  shapeOf,
  string,
  type Shape,
} from '../../values/shape.ts'
import { noTokens } from '../state/usage.ts'
import type { Mode } from './base-context.ts'
import type { HookOutcome } from './outcome.ts'
import { specOf, type Ability, type HookTrigger } from './triggers.ts'

/** What an action returned, as JSON. Throws HOOK_OUTCOME_INVALID for everything but a plain object that is JSON. */
export function outcomeJson(returned: unknown, mode: Mode): JsonObject {
  if (mode === 'observe') return {}
  if (!isPlainObject(returned)) throw invalid(`${describeValue(returned)}, which is not an outcome`, returned)
  const copy = toJson(returned) as JsonObject
  for (const [name, value] of Object.entries(returned)) {
    const mayMiss = value === undefined && name !== 'decision' && Object.hasOwn(shapes, name)
    // A decision that was looked up and not found must not count as no opinion.
    if (!mayMiss && !Object.hasOwn(copy, name)) throw invalid(`"${name}" as ${describeValue(value)}`, returned)
  }
  return copy
}

/**
 * Checks an outcome, new or recorded: every field is known, has the right type and has an effect at the trigger. Throws
 * HOOK_OUTCOME_INVALID otherwise, so that a guard with such an outcome blocks.
 */
export function checkedOutcome(outcome: Json, trigger: HookTrigger, mode: Mode): HookOutcome {
  if (mode === 'observe') return {}
  if (!isJsonObject(outcome)) throw invalid(`${describeValue(outcome)}, which is not an outcome`, outcome)
  for (const [name, value] of Object.entries(outcome)) {
    const shape = Object.hasOwn(shapes, name) ? shapes[name as keyof typeof shapes] : undefined
    if (shape === undefined) {
      throw invalid(
        `${describeValue(outcome)} with an unknown field "${name}". Known: ${Object.keys(shapes).join(', ')}`,
        outcome,
      )
    }
    const problem = shape(value, name)
    if (problem !== undefined) throw invalid(`${describeValue(outcome)}: ${problem}`, outcome)
  }
  const checked: HookOutcome = outcome
  if (checked.message !== undefined && checked.decision === undefined) {
    throw invalid(`${describeValue(outcome)}: "message" has no effect without "decision"`, outcome)
  }
  checkAbilities(checked, trigger, mode)
  return checked
}

/** Checks that everything in an outcome has an effect at the trigger. */
function checkAbilities(outcome: HookOutcome, trigger: HookTrigger, mode: Mode): void {
  const { hook, guard } = specOf(trigger)
  const changes: readonly Ability[] = mode === 'transform' && hook !== 'around' ? hook : []
  const can = (...needed: readonly Ability[]): boolean =>
    needed.some((ability) => guard.includes(ability) || changes.includes(ability))
  const reject = (what: string, why = ''): never => {
    const message = `Its outcome has ${what}, which has no effect at ${trigger}${why}.`
    throw new AgentError('HOOK_OUTCOME_INVALID', message, { value: outcome })
  }
  const { decision, votes = [], recovery } = outcome
  if (decision === 'block' && !can('block', 'permit')) reject('a block')
  if (decision === 'allow' && !can('permit')) reject('"allow"')
  if (decision === 'ask' && !can('permit', 'ask')) reject('"ask"')
  for (const vote of votes) {
    if (vote.decision === 'forbidContinuation' ? !can('stop', 'vote') : !can('vote', 'continue')) reject(vote.decision)
  }
  if (outcome.within !== undefined && !can('within')) reject('"within"')
  if (recovery !== undefined && !changes.includes('recover')) reject(recovery.decision)
  for (const [name, ability] of changing) {
    if (outcome[name] !== undefined && !changes.includes(ability)) {
      reject(`a change of its ${name}`, mode === 'guard' ? `: a guard cannot change it` : undefined)
    }
  }
}

const changing = [
  ['input', 'input'],
  ['request', 'request'],
  ['response', 'response'],
  ['args', 'args'],
  ['output', 'output'],
  ['messages', 'messages'],
  ['state', 'state'],
] as const satisfies readonly (readonly [keyof HookOutcome, Ability])[]

const message = readable((value) => toMessage(value, 'message'), 'must be a message')
const texts = listOf(string)

/** The type of each field of an outcome. */
const shapes: { readonly [K in keyof HookOutcome]-?: Shape } = {
  decision: decisionShape,
  message: string,
  votes: listOf(
    only({
      decision: oneOf(...continuationDecisions),
      reason: oneOf(...stopReasons),
      message: string,
      value: optional(present),
    }),
  ),
  recovery: only({ decision: oneOf('retry', 'ignore'), afterMs: amount }),
  input: readable(toInput, 'must be an input'),
  request: object,
  response: shapeOf({
    content: listOf(must((part) => isReplyPart(part), 'must be a part of a response')),
    text: string,
    finishReason: must(isFinishReason, 'must be a finish reason'),
    usage: object,
  }),
  args: present,
  output: present,
  messages: listOf(message),
  state: only({
    metadata: optional(object),
    removed: optional(texts),
    appended: optional(listOf(message)),
    messages: optional(listOf(message)),
    systemPrompt: optional(string),
    responseFormat: optional(must((value) => value === null || isJsonObject(value), 'must be an object or null')),
  }),
  spent: only(Object.fromEntries(Object.keys(noTokens).map((name) => [name, optional(amount)]))),
  within: amount,
  compact: object,
  warnings: listOf(only({ code: string, message: string, definedAt: optional(string) })),
  decidedAt: string,
}

const known = oneOf('block', 'ask', 'allow')
/** What commands and Claude Code hooks answer with. */
const synonyms: { readonly [name: string]: string } = { deny: 'block', ask_user: 'ask', approve: 'allow' }

function decisionShape(value: Json | undefined, path: string): string | undefined {
  const problem = known(value, path)
  const meant = typeof value === 'string' && Object.hasOwn(synonyms, value) ? synonyms[value] : undefined
  return problem === undefined || meant === undefined ? problem : `${problem}: write "${meant}" here`
}

/** An object with these fields and no others. */
function only(fields: { readonly [key: string]: Shape }): Shape {
  const shape = shapeOf(fields)
  return (value, path) => {
    const unknown = isJsonObject(value) ? Object.keys(value).find((name) => !Object.hasOwn(fields, name)) : undefined
    return shape(value, path) ?? (unknown === undefined ? undefined : `"${path}.${unknown}" is unknown`)
  }
}

function readable(read: (value: unknown) => unknown, expected: string): Shape {
  return must((value) => {
    try {
      read(value)
      return true
    } catch {
      return false
    }
  }, expected)
}

function invalid(what: string, value: unknown): AgentError {
  return new AgentError('HOOK_OUTCOME_INVALID', `It returned ${what}. Return {} for no opinion.`, { value })
}
