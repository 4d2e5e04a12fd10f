import { isJsonObject, type Json, type JsonObject } from '../../data/json.ts'
import type { ProcessResult } from '../../machine/run-process.ts'
import { eventSpec, type ClaudeEvent } from './events.ts'

/** What one handler said, as far as its event honours it. */
export type HandlerAnswer = {
  /** It blocks, in whatever way its event has of blocking. */
  readonly block?: { readonly reason: string; readonly by: 'exit' | 'json' }
  /** Of PreToolUse and PreModelSwitch. */
  readonly permission?: { readonly decision: 'allow' | 'deny' | 'ask' | 'defer'; readonly reason: string }
  /** Of PermissionRequest. */
  readonly request?:
    | { readonly behavior: 'allow'; readonly updatedInput?: JsonObject }
    | { readonly behavior: 'deny'; readonly message: string; readonly interrupt: boolean }
  /** `continue: false`, and why. */
  readonly stop?: { readonly reason: string }
  readonly updatedInput?: JsonObject
  readonly updatedOutput?: Json
  readonly context?: string
  readonly systemMessage?: string
  /** Everything else of `hookSpecificOutput` that is honoured, by its name. */
  readonly other?: JsonObject
  /** What went wrong without stopping anything; the first line is for the user. */
  readonly problem?: string
  /** Whether that counts as a block when the handler says `onFailure: "block"`. */
  readonly failed?: true
}

const MAX_TEXT = 10_000

/** Reads how a command ended and what it printed. */
export function readProcess(result: ProcessResult, event: ClaudeEvent, command: string): HandlerAnswer {
  const { ended, exitCode, signal, stdout, stderr, problem } = result
  if (ended === 'timedOut') return failure('did not answer in time')
  if (ended === 'cancelled') return failure('was cancelled')
  if (ended === 'notStarted') return failure(`could not be started: ${problem ?? 'nobody knows why'}`)
  const printed = readText(stdout.head, event)
  if (exitCode === 2) return blockedBy(printed, stderr.head.trim(), event)
  if (printed.isJson && printed.answer.problem === undefined) return printed.answer
  if (exitCode === 0) {
    if (printed.isJson) return { ...printed.answer, failed: true }
    return printed.answer
  }
  const first = stderr.head.trim().split('\n')[0] ?? ''
  const how = exitCode === null ? `was killed by ${signal ?? 'a signal'}` : `exited with ${exitCode}`
  return failure(`${short(command)} ${how}${first === '' ? '' : `: ${first}`}`)
}

type Printed = { readonly isJson: boolean; readonly answer: HandlerAnswer }

/** Reads what was printed, or answered over HTTP, without regard to how it ended. */
export function readText(text: string, event: ClaudeEvent): Printed {
  const trimmed = text.trim()
  if (trimmed.startsWith('{') && trimmed.endsWith('}')) {
    try {
      return { isJson: true, answer: readJson(JSON.parse(trimmed), event) }
    } catch {
      // then it is text
    }
  }
  const isContext = eventSpec(event).textIsContext === true && trimmed !== ''
  return { isJson: false, answer: isContext ? { context: capped(trimmed) } : {} }
}

/** Exit code 2: whatever the JSON allows, it blocks; what else it says still counts. */
function blockedBy({ isJson, answer }: Printed, said: string, event: ClaudeEvent): HandlerAnswer {
  if (event === 'Elicitation' || event === 'ElicitationResult') return { block: { reason: said, by: 'exit' } }
  const valid = isJson && answer.problem === undefined ? answer : {}
  const own = valid.block?.reason ?? (valid.permission?.decision === 'deny' ? valid.permission.reason : undefined)
  const { permission: _permission, request: _request, ...rest } = valid
  return { ...rest, block: { reason: own ?? said, by: own === undefined ? 'exit' : 'json' } }
}

/** Reads an object by the schema of an event. One that does not fit is dropped as a whole. */
export function readJson(value: unknown, event: ClaudeEvent): HandlerAnswer {
  if (!isJsonObject(value)) return problemAnswer('the answer is not an object')
  const { decides, stops, specific } = eventSpec(event)
  for (const [name, type] of topLevel) {
    if (value[name] !== undefined && typeof value[name] !== type) return problemAnswer(`"${name}" must be a ${type}`)
  }
  const decision = value['decision']
  if (decision !== undefined && decision !== 'approve' && decision !== 'block') {
    return problemAnswer(`"decision" must be "approve" or "block", not ${JSON.stringify(decision)}`)
  }
  const own = value['hookSpecificOutput']
  const specificAnswer = own === undefined ? {} : readSpecific(own, event, specific)
  if (specificAnswer.problem !== undefined) return specificAnswer
  if (event === 'PermissionRequest' && own !== undefined && specificAnswer.request === undefined) {
    return problemAnswer('"hookSpecificOutput" of PermissionRequest needs a "decision"')
  }
  const reason = typeof value['reason'] === 'string' ? value['reason'] : ''
  const { systemMessage } = value
  const silent = event === 'PreCompact' || event === 'ConfigChange'
  return {
    ...legacyPermission(decision, reason, event),
    ...specificAnswer,
    ...(decision === 'block' && decides === true && event !== 'PreToolUse' && { block: { reason, by: 'json' } }),
    ...(value['continue'] === false && stops === true && { stop: { reason: text(value['stopReason']) } }),
    ...(typeof systemMessage === 'string' && !silent && { systemMessage: capped(systemMessage) }),
  }
}

const topLevel = [
  ['continue', 'boolean'],
  ['stopReason', 'string'],
  ['suppressOutput', 'boolean'],
  ['systemMessage', 'string'],
  ['terminalSequence', 'string'],
  ['reason', 'string'],
] as const

/** Before there was a `permissionDecision`, a call was decided about at the top. */
function legacyPermission(decision: Json | undefined, reason: string, event: ClaudeEvent): HandlerAnswer {
  if (event !== 'PreToolUse' || decision === undefined) return {}
  return { permission: { decision: decision === 'approve' ? 'allow' : 'deny', reason } }
}

function readSpecific(value: Json, event: ClaudeEvent, honoured: readonly string[] | undefined): HandlerAnswer {
  if (!isJsonObject(value)) return problemAnswer('"hookSpecificOutput" must be an object')
  const { hookEventName } = value
  if (hookEventName !== event) {
    return problemAnswer(`"hookEventName" must be "${event}", not ${JSON.stringify(hookEventName) ?? 'missing'}`)
  }
  if (honoured === undefined) return {}
  const wrong = Object.entries(value).find(([name, given]) => honoured.includes(name) && !fits(name, given, event))
  if (wrong !== undefined) return problemAnswer(`"${wrong[0]}" cannot be ${JSON.stringify(wrong[1])}`)
  const given = Object.fromEntries(Object.entries(value).filter(([name]) => honoured.includes(name)))
  const { permissionDecision, permissionDecisionReason, updatedInput, additionalContext, decision, ...other } = given
  const { updatedToolOutput, updatedMCPToolOutput, ...rest } = other
  const output = updatedToolOutput ?? updatedMCPToolOutput
  return {
    ...(permissionDecision !== undefined && {
      permission: { decision: permissionDecision as 'allow', reason: text(permissionDecisionReason) },
    }),
    ...(updatedInput !== undefined && { updatedInput: updatedInput as JsonObject }),
    ...(output !== undefined && { updatedOutput: output }),
    ...(typeof additionalContext === 'string' && additionalContext !== '' && { context: capped(additionalContext) }),
    ...(decision !== undefined && { request: requestOf(decision as JsonObject) }),
    ...(Object.keys(rest).length > 0 && { other: rest }),
  }
}

function fits(name: string, value: Json, event: ClaudeEvent): boolean {
  switch (name) {
    case 'permissionDecision':
      return ['allow', 'deny', 'ask', ...(event === 'PreToolUse' ? ['defer'] : [])].includes(value as string)
    case 'permissionDecisionReason':
    case 'additionalContext':
    case 'initialUserMessage':
    case 'sessionTitle':
    case 'displayContent':
    case 'classifierContext':
    case 'worktreePath':
      return typeof value === 'string'
    case 'updatedInput':
      return isJsonObject(value)
    case 'watchPaths':
      return Array.isArray(value) && value.every((path) => typeof path === 'string')
    case 'retry':
    case 'reloadSkills':
    case 'suppressOriginalPrompt':
      return typeof value === 'boolean'
    case 'action':
      return ['accept', 'decline', 'cancel'].includes(value as string)
    case 'decision':
      return isJsonObject(value) && fitsRequest(value)
    default:
      return true
  }
}

function fitsRequest({ behavior, updatedInput, message, interrupt }: JsonObject): boolean {
  if (behavior === 'allow') return updatedInput === undefined || isJsonObject(updatedInput)
  return (
    behavior === 'deny' &&
    (message === undefined || typeof message === 'string') &&
    (interrupt === undefined || typeof interrupt === 'boolean')
  )
}

function requestOf({ behavior, updatedInput, message, interrupt }: JsonObject): NonNullable<HandlerAnswer['request']> {
  if (behavior === 'deny') return { behavior, message: text(message), interrupt: interrupt === true }
  return { behavior: 'allow', ...(isJsonObject(updatedInput) && { updatedInput }) }
}

/** A model that was asked whether something is in order. */
export function readVerdict(
  value: { readonly ok: boolean; readonly reason?: string; readonly impossible?: boolean },
  event: ClaudeEvent,
  continueOnBlock: boolean,
): HandlerAnswer {
  if (value.ok) return {}
  const reason = value.reason ?? ''
  switch (event) {
    case 'Stop':
    case 'SubagentStop':
      return value.impossible === true ? {} : { block: { reason, by: 'json' } }
    case 'PreToolUse':
      return { permission: { decision: 'deny', reason }, ...(!continueOnBlock && { stop: { reason } }) }
    case 'PostToolUse':
    case 'TeammateIdle':
      return { block: { reason, by: 'json' }, ...(!continueOnBlock && { stop: { reason } }) }
    case 'PostToolBatch':
    case 'UserPromptSubmit':
    case 'UserPromptExpansion':
      return { block: { reason, by: 'json' }, stop: { reason } }
    case 'PermissionRequest':
    case 'PermissionDenied':
      return {}
    default:
      return { block: { reason, by: 'json' } }
  }
}

/** A failure is nothing but a notice, unless its handler says otherwise. */
export function failure(problem: string): HandlerAnswer {
  return { problem, failed: true }
}

function problemAnswer(problem: string): HandlerAnswer {
  return { problem }
}

function capped(value: string): string {
  return value.length <= MAX_TEXT
    ? value
    : `${value.slice(0, 2_000)}\n[… ${value.length - 2_000} characters left out …]`
}

function text(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

function short(command: string): string {
  return command.length > 200 ? `${command.slice(0, 200)}…` : command
}
