import { isJsonObject, type Json, type JsonObject } from '../../../values/json.ts'
import type { HandlerAnswer } from './handler-answer.ts'
import { defined } from '../../defined.ts'
import type { ClaudeEvent } from '../events/claude-events.ts'
import { stringIn } from '../../text.ts'

/** Reads the fields of `hookSpecificOutput` that have an effect at an event. Returns a text if it is invalid. */
export function readSpecific(
  value: Json,
  event: ClaudeEvent,
  supported: readonly string[] | undefined,
): HandlerAnswer | string {
  if (!isJsonObject(value)) return '"hookSpecificOutput" must be an object'
  const { hookEventName } = value
  if (hookEventName !== event) {
    const what = hookEventName === undefined ? 'is missing' : `is ${JSON.stringify(hookEventName)}`
    return `"hookEventName" must be "${event}", but it ${what}`
  }
  if (supported === undefined) return `${event} has no "hookSpecificOutput"`
  const wrong = Object.entries(value).find(([name, given]) => supported.includes(name) && !fits(name, given, event))
  if (wrong !== undefined) return `"${wrong[0]}" cannot be ${JSON.stringify(wrong[1])}`
  if (event === 'PermissionRequest' && value['decision'] === undefined) {
    return '"hookSpecificOutput" of PermissionRequest must have a "decision"'
  }
  return toAnswer(Object.fromEntries(Object.entries(value).filter(([name]) => supported.includes(name))))
}

function toAnswer(given: JsonObject): HandlerAnswer {
  const { permissionDecision, permissionDecisionReason, additionalContext, decision, ...rest } = given
  const { updatedInput, updatedToolOutput: updatedOutput, ...other } = rest
  return {
    ...(permissionDecision !== undefined && {
      permission: { decision: permissionDecision as 'allow', reason: stringIn(permissionDecisionReason) },
    }),
    ...defined({ updatedInput: updatedInput as JsonObject | undefined, updatedOutput }),
    ...(typeof additionalContext === 'string' && additionalContext.trim() !== '' && { context: additionalContext }),
    ...(decision !== undefined && { request: requestOf(decision as JsonObject) }),
    ...(Object.keys(other).length > 0 && { other }),
  }
}

function fits(name: string, value: Json, event: ClaudeEvent): boolean {
  if (name === 'permissionDecision') {
    return ['allow', 'deny', 'ask', ...(event === 'PreToolUse' ? ['defer'] : [])].includes(value as string)
  }
  return !Object.hasOwn(checks, name) || checks[name]!(value)
}

const isText = (value: Json): boolean => typeof value === 'string'
const isFlag = (value: Json): boolean => typeof value === 'boolean'

const checks: { readonly [name: string]: (value: Json) => boolean } = {
  permissionDecisionReason: isText,
  additionalContext: isText,
  initialUserMessage: isText,
  sessionTitle: isText,
  displayContent: isText,
  classifierContext: isText,
  worktreePath: isText,
  updatedInput: isJsonObject,
  content: isJsonObject,
  watchPaths: (value) => Array.isArray(value) && value.every((path: Json) => isText(path)),
  retry: isFlag,
  reloadSkills: isFlag,
  suppressOriginalPrompt: isFlag,
  action: (value) => ['accept', 'decline', 'cancel'].includes(value as string),
  decision: (value) => isJsonObject(value) && fitsRequest(value),
}

function fitsRequest({ behavior, updatedInput, updatedPermissions, message, interrupt }: JsonObject): boolean {
  if (behavior === 'allow') {
    return (
      (updatedInput === undefined || isJsonObject(updatedInput)) &&
      (updatedPermissions === undefined || Array.isArray(updatedPermissions))
    )
  }
  return (
    behavior === 'deny' &&
    (message === undefined || typeof message === 'string') &&
    (interrupt === undefined || typeof interrupt === 'boolean')
  )
}

function requestOf({ behavior, updatedInput, message, interrupt }: JsonObject): NonNullable<HandlerAnswer['request']> {
  if (behavior === 'deny') return { behavior, message: stringIn(message), interrupt: interrupt === true }
  return { behavior: 'allow', ...(isJsonObject(updatedInput) && { updatedInput }) }
}
