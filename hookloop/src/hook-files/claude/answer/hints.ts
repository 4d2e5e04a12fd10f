import { isJsonObject, type JsonObject } from '../../../values/json.ts'
import { claudeEventNames, eventSpec, type ClaudeEvent } from '../events/claude-events.ts'

export const requestForm =
  'Answer with "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": { "behavior": "allow" or "deny" } }.'

/** Says where the first field without effect belongs, or which fields have an effect at the event. */
export function hintFor(value: JsonObject, event: ClaudeEvent): string | undefined {
  if (isEcho(value)) return undefined
  const own = isJsonObject(value['hookSpecificOutput']) ? value['hookSpecificOutput'] : undefined
  for (const name of Object.keys(own ?? {})) {
    if (name !== 'hookEventName' && !insideAt(event).includes(name)) return hint(name, 'in "hookSpecificOutput"', event)
  }
  const isDecided = value['decision'] !== undefined || value['continue'] !== undefined || own !== undefined
  for (const [name, given] of Object.entries(value)) {
    if (name === 'stopReason' && value['continue'] === undefined && given !== '')
      return `its "stopReason" ${withoutStop}`
    if (name === 'reason' && !isDecided && eventSpec(event).decides === true) return `its "reason" ${withoutDecision}`
    const isIdle =
      name === 'continue' ? given !== false : name === 'decision' && given !== 'block' && event !== 'PermissionRequest'
    if (!isIdle && isMeant(name) && !topAt(event).includes(name)) return hint(name, 'at the top level', event)
  }
  return undefined
}

const withoutStop = 'has no effect without "continue": false'
const withoutDecision = 'has no effect without a "decision"'

function hint(name: string, place: string, event: ClaudeEvent): string {
  const [top, inside] = [topAt(event), insideAt(event)]
  const alike = (each: string): boolean => folded(each).includes(folded(name)) || folded(name) === folded(each)
  const [meant] = [inside, top].flatMap((names) => names.filter(alike))
  const known = [...top.filter((each) => decisive.includes(each)), ...inside]
  const advice =
    meant === undefined
      ? `. Fields with an effect there: ${known.length === 0 ? 'none' : known.join(', ')}`
      : `: it is "${meant}"${inside.includes(meant) ? ` in "hookSpecificOutput", with "hookEventName": "${event}"` : ' at the top level'}`
  return `its "${name}" has no effect ${place} at ${event}${advice}${event === 'PermissionRequest' ? `. ${requestForm}` : ''}`
}

const decisive = ['decision', 'continue']
/** The fields of an answer to any event. */
const always = ['stopReason', 'suppressOutput', 'systemMessage', 'terminalSequence', 'reason', 'hookSpecificOutput']

function topAt(event: ClaudeEvent): readonly string[] {
  const { decides, stops } = eventSpec(event)
  return [...(decides === true ? ['decision'] : []), ...(stops === true ? ['continue'] : []), ...always]
}

function insideAt(event: ClaudeEvent): readonly string[] {
  return eventSpec(event).specific ?? []
}

/** Whether a name at the top level can only be meant as a field of an answer, in any spelling, or as a decision. */
function isMeant(name: string): boolean {
  return (
    name === 'ok' ||
    isDecisionWord(name) ||
    [...decisive, ...always, ...specificFields].some((each) => folded(each) === folded(name))
  )
}

/** Whether a word looks like a decision. Many scripts print `ok` for people. */
export function isDecisionWord(word: string): boolean {
  return /^(?:block(?:ed)?|den(?:y|ied)|allow(?:ed)?|approved?|permission)$/i.test(word)
}

/** Whether an answer has a field of answers, and is not just some JSON. */
export function isAnswer(value: JsonObject): boolean {
  return !isEcho(value) && [...decisive, ...always, ...specificFields].some((name) => value[name] !== undefined)
}

/** Scripts often print what they have read. */
function isEcho(value: JsonObject): boolean {
  return value['hook_event_name'] !== undefined
}

/** The fields of `hookSpecificOutput` of any event. Only those with a capital letter cannot be anything else. */
const specificFields: readonly string[] = [...new Set(claudeEventNames.flatMap(insideAt))].filter((name) =>
  /[A-Z]/.test(name),
)

function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '')
}
