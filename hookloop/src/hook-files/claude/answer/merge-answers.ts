import { isJsonObject, type Json, type JsonObject } from '../../../values/json.ts'
import type { HandlerAnswer } from './handler-answer.ts'
import { defined } from '../../defined.ts'
import { eventSpec, type ClaudeEvent } from '../events/claude-events.ts'

/** The merged answers of all handlers of one event. */
export type MergedAnswer = {
  readonly decision: 'allow' | 'deny' | 'ask' | 'defer' | 'block' | 'stop' | 'context' | 'none'
  readonly reason: string
  readonly updatedInput?: JsonObject
  readonly updatedOutput?: Json
  readonly additionalContext?: string
  readonly systemMessage?: string
  /** With `deny` of a PermissionRequest: the run also ends. */
  readonly interrupt?: true
  /** The decision in addition to `stop`. */
  readonly alsoDecided?: { readonly decision: 'allow' | 'deny' | 'ask' | 'defer' | 'block'; readonly reason: string }
  /** Other fields, such as a new title. */
  readonly other?: JsonObject
}

const rank = { deny: 4, defer: 3, ask: 2, allow: 1 } as const

/** Merges the answers of one event: deny > defer > ask > allow > nothing. Later handlers of the settings override earlier ones. */
export function mergeAnswers(answers: readonly HandlerAnswer[], event: ClaudeEvent): MergedAnswer {
  const judged = event === 'PermissionRequest' ? mergedRequest(answers) : mergedPermission(answers, event)
  const blocks = answers.filter(({ block }) => block !== undefined)
  const stop = answers.find((answer) => answer.stop !== undefined)?.stop
  const context = joined(answers.map((answer) => answer.context))
  const own =
    judged ??
    (blocks.length > 0
      ? { decision: 'block' as const, reason: joined(blocks.map(({ block }) => block!.reason)) ?? '' }
      : undefined)
  const decided = stop !== undefined ? { decision: 'stop' as const, reason: stop.reason } : own
  const updatedInput = own?.decision === 'defer' ? undefined : lastInput(answers, event)
  const updatedOutput = answers.findLast((answer) => answer.updatedOutput !== undefined)?.updatedOutput
  const systemMessage = joined(answers.map((answer) => answer.systemMessage))
  const other = mergedOther(answers)
  return {
    decision: decided?.decision ?? (context === undefined ? 'none' : 'context'),
    reason: decided?.reason ?? '',
    ...(stop !== undefined && own !== undefined && { alsoDecided: { decision: own.decision, reason: own.reason } }),
    ...(judged?.interrupt === true && { interrupt: true as const }),
    ...defined({ updatedInput, updatedOutput, additionalContext: context, systemMessage }),
    ...(Object.keys(other).length > 0 && { other }),
  }
}

type Judged = {
  readonly decision: 'allow' | 'deny' | 'ask' | 'defer'
  readonly reason: string
  readonly interrupt?: boolean
}

/** Exit code 2 is a deny. The reasons of all handlers with the strongest decision are joined. */
function mergedPermission(answers: readonly HandlerAnswer[], event: ClaudeEvent): Judged | undefined {
  if (eventSpec(event).block !== 'denies') return undefined
  const all = answers.flatMap(({ block, permission, other }): Judged[] => {
    if (block !== undefined) return [{ decision: 'deny', reason: block.reason }]
    if (permission !== undefined) return [permission]
    const action = other?.['action'] // of an elicitation
    return typeof action === 'string' ? [{ decision: action === 'accept' ? 'allow' : 'deny', reason: action }] : []
  })
  const strongest = all.reduce<Judged | undefined>(
    (best, each) => (best === undefined || rank[each.decision] > rank[best.decision] ? each : best),
    undefined,
  )
  if (strongest === undefined) return undefined
  const reasons = all.filter(({ decision }) => decision === strongest.decision).map(({ reason }) => reason)
  return { decision: strongest.decision, reason: joined(reasons) ?? '' }
}

/** PermissionRequest: deny overrides allow. */
function mergedRequest(answers: readonly HandlerAnswer[]): Judged | undefined {
  const requests = answers.flatMap(({ request }) => (request === undefined ? [] : [request]))
  const denied = requests.find((request) => request.behavior === 'deny')
  if (denied?.behavior === 'deny') return { decision: 'deny', reason: denied.message, interrupt: denied.interrupt }
  return requests.length > 0 ? { decision: 'allow', reason: '', interrupt: false } : undefined
}

/** The last value of each field and variable applies. One `retry` is enough. */
function mergedOther(answers: readonly HandlerAnswer[]): JsonObject {
  const all = answers.map(({ other }) => other ?? {})
  const other = Object.assign({}, ...all) as JsonObject
  const variables = all.flatMap(({ environment }) => (isJsonObject(environment) ? [environment] : []))
  return {
    ...other,
    ...(all.some(({ retry }) => retry === true) && { retry: true }),
    ...(variables.length > 0 && { environment: Object.assign({}, ...variables) as JsonObject }),
  }
}

function lastInput(answers: readonly HandlerAnswer[], event: ClaudeEvent): JsonObject | undefined {
  if (event !== 'PermissionRequest') {
    return answers.findLast((answer) => answer.updatedInput !== undefined)?.updatedInput
  }
  const last = answers.findLast(({ request }) => request?.behavior === 'allow' && request.updatedInput !== undefined)
  return last?.request?.behavior === 'allow' ? last.request.updatedInput : undefined
}

function joined(texts: readonly (string | undefined)[]): string | undefined {
  const given = texts.filter((text) => text !== undefined && text !== '')
  return given.length === 0 ? undefined : given.join('\n')
}
