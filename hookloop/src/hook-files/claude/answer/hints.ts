import { isJsonObject, type JsonObject } from '../../../state/json.ts'
import { claudeEventNames, eventSpec, type ClaudeEvent } from '../events/claude-events.ts'

/** How a PermissionRequest hook decides. */
export const requestForm =
  'Answer with "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": { "behavior": "allow" or "deny" } }.'

/** Says what the first field without effect should have been, for the common mistakes. */
export function hintFor(value: JsonObject, event: ClaudeEvent): string | undefined {
  const { specific = [] } = eventSpec(event)
  const misplaced = specific.find((name) => name !== 'decision' && value[name] !== undefined)
  if (misplaced !== undefined)
    return `its "${misplaced}" has no effect at the top level: put it into "hookSpecificOutput", with "hookEventName": "${event}"`
  const own = value['hookSpecificOutput']
  if (isJsonObject(own)) return hintInside(own, event) ?? hintAtTop(value, event)
  return hintForRequest(value, event) ?? hintAtTop(value, event) ?? hintForNames(value, event)
}

function hintForRequest(value: JsonObject, event: ClaudeEvent): string | undefined {
  if (event !== 'PermissionRequest') return undefined
  const other = ['decision', 'permissionDecision', 'continue'].find(
    (name) => value[name] !== undefined && value[name] !== true,
  )
  return other === undefined ? undefined : `its "${other}" has no effect. ${requestForm}`
}

/** A field of `hookSpecificOutput` that its event does not have. */
function hintInside(own: JsonObject, event: ClaudeEvent): string | undefined {
  const { specific = [] } = eventSpec(event)
  const name = Object.keys(own).find((each) => each !== 'hookEventName' && !specific.includes(each))
  if (name === undefined) return undefined
  const meant = specific.find((each) => folded(each).includes(folded(name)))
  const known = specific.length === 0 ? '' : `. Known there: ${specific.join(', ')}`
  const advice =
    meant !== undefined
      ? `: it is called "${meant}" there`
      : topLevelFields.includes(name)
        ? ': put it at the top level'
        : known
  return `its "${name}" has no effect in "hookSpecificOutput" of ${event}${advice}`
}

/** A field that has no effect at this event, or without another one. */
function hintAtTop(value: JsonObject, event: ClaudeEvent): string | undefined {
  const { decides, stops } = eventSpec(event)
  const foreign = specificFields.find((name) => value[name] !== undefined)
  if (foreign !== undefined)
    return `its "${foreign}" has no effect at ${event}${decides === true ? ': use "decision": "block"' : ''}`
  if (value['decision'] === 'block' && decides !== true) return `its "decision" has no effect at ${event}`
  if (value['continue'] === false && stops !== true) return `its "continue" has no effect at ${event}`
  const isAlone = (name: string): boolean => typeof value[name] === 'string' && value[name] !== ''
  if (isAlone('stopReason') && value['continue'] === undefined)
    return 'its "stopReason" has no effect without "continue": false'
  const isReason = isAlone('reason') && value['decision'] === undefined && value['continue'] === undefined
  if (isReason && decides === true && value['hookSpecificOutput'] === undefined && !isEcho(value))
    return 'its "reason" has no effect without a "decision"'
  return undefined
}

/** Another spelling of a field, or a word that looks like a decision, in an answer without one. */
function hintForNames(value: JsonObject, event: ClaudeEvent): string | undefined {
  if (isEcho(value)) return undefined
  for (const name of Object.keys(value)) {
    if (topLevelFields.includes(name)) continue
    const meant = [...topLevelFields, ...specificFields].find((each) => folded(each) === folded(name))
    if (meant !== undefined) return `its "${name}" has no effect: it is called "${meant}"`
    if (name === 'ok' || isDecisionWord(name)) return `its "${name}" has no effect at ${event}: ${decisionForm(event)}`
  }
  return undefined
}

function decisionForm(event: ClaudeEvent): string {
  const { specific = [], decides } = eventSpec(event)
  if (specific.includes('permissionDecision'))
    return `use "hookSpecificOutput": { "hookEventName": "${event}", "permissionDecision": "deny" }`
  return decides === true ? 'use "decision": "block"' : 'nothing can be decided there'
}

/** Whether a word looks like a decision. Many scripts print `ok` for people. */
export function isDecisionWord(word: string): boolean {
  return /^(?:block(?:ed)?|den(?:y|ied)|allow(?:ed)?|approved?|permission)$/i.test(word)
}

/** Whether an answer has a field of answers, and is not just some JSON. */
export function isAnswer(value: JsonObject): boolean {
  return !isEcho(value) && [...topLevelFields, ...specificFields].some((name) => value[name] !== undefined)
}

/** Scripts often print what they have read. */
function isEcho(value: JsonObject): boolean {
  return value['hook_event_name'] !== undefined
}

const topLevelFields: readonly string[] = [
  'continue',
  'stopReason',
  'suppressOutput',
  'systemMessage',
  'terminalSequence',
  'decision',
  'reason',
  'hookSpecificOutput',
]

/** The fields of `hookSpecificOutput` of any event. Only those with a capital letter cannot be anything else. */
const specificFields: readonly string[] = [
  ...new Set(claudeEventNames.flatMap((event) => eventSpec(event).specific ?? [])),
].filter((name) => /[A-Z]/.test(name))

function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '')
}
