import { isJsonObject, parseExactly, type Json } from '../../../values/json.ts'
import { messageOf } from '../../../errors.ts'
import { redactor, secretPatterns } from '../../../values/secrets.ts'
import type { ProcessResult } from '../../../system/processes/run-process.ts'
import { eventSpec, type ClaudeEvent } from '../events/claude-events.ts'
import type { Failure, HandlerAnswer } from './handler-answer.ts'
import { hintFor, isAnswer, isDecisionWord, requestForm } from './hints.ts'
import { readSpecific } from './read-specific-output.ts'
import { stringIn } from '../../text.ts'

/** Reads the exit code and the output of a command. */
export function readProcess(result: ProcessResult, event: ClaudeEvent, name: string): HandlerAnswer {
  const { ended, exitCode, leftBehind, problem } = result
  const answer = readResult(result, event, name)
  const remaining = ended === 'exited' ? problem : undefined
  return {
    ...(leftBehind && { problem: `background processes of ${name} were ended` }),
    ...(remaining !== undefined && { problem: `${name} has ended. ${remaining}` }),
    ...answer,
    ...(exitCode !== null && { exitCode }),
  }
}

function readResult(result: ProcessResult, event: ClaudeEvent, name: string): HandlerAnswer {
  const { ended, exitCode, stdout, stderr, problem } = result
  if (ended === 'timedOut') return failure('timedOut', [`${name} timed out`, problem].filter(Boolean).join('. '))
  if (ended === 'cancelled') return failure('cancelled', `${name} was cancelled`)
  if (ended === 'notStarted') {
    return failure('notStarted', `${name} could not be started: ${problem ?? 'unknown reason'}`)
  }
  if (event === 'WorktreeCreate') return readPath(result)
  const error = stderr.head.trim()
  const printed = readText(stdout.head, event)
  if (exitCode === 2) return blockedBy(printed, { error, isUnread: stdout.head.trim() !== '' && error === '' }, event)
  const isValid = printed.isJson && printed.answer.problem === undefined
  if (exitCode === 0) {
    if (stdout.droppedBytes > 0 && printed.answer.context === undefined) {
      return failure('tooMuchOutput', `${name} printed ${stdout.totalBytes} bytes, more than the maximum`)
    }
    const hint = stdout.head.trim() === '' && isAnswerText(error) ? { hint: onStandardError } : {}
    return { ...hint, ...(isValid ? printed.answer : withFailure(printed)) }
  }
  if (isValid) return { ...printed.answer, otherExitCode: true }
  const lines = error.split('\n')
  const first = (lines[0]!.startsWith('Traceback (') ? lines.at(-1) : lines[0])! // Python prints the error last
  const how = exitCode === null ? `was killed by ${result.signal ?? 'a signal'}` : `exited with ${exitCode}`
  const details = first === '' ? '' : `: ${redact(first) as string}`
  return failure(exitCode === null ? 'killed' : 'exited', `${name} ${how}${details}`)
}

const redact = redactor(secretPatterns)

type Printed = {
  readonly isJson: boolean
  readonly answer: HandlerAnswer
  /** Why it is not JSON, if it looks like it. */
  readonly broken?: string
}

/** Reads the output of a command, or the body of a response. */
export function readText(text: string, event: ClaudeEvent): Printed {
  const trimmed = text.trim()
  const isObject = trimmed.startsWith('{') && trimmed.endsWith('}')
  const { value, problem } = parsed(trimmed)
  if (isObject && value !== undefined) return { isJson: true, answer: readJson(value, event) }
  const isContext = eventSpec(event).textIsContext === true && trimmed !== ''
  if (isContext) return { isJson: false, answer: { context: trimmed } }
  if (isDecisionWord(trimmed)) return { isJson: false, answer: { hint: onlyText } }
  if (!looksLikeJson(trimmed, value)) return { isJson: false, answer: {} }
  const why = isObject && problem !== undefined ? ` (${problem})` : ''
  return { isJson: false, answer: {}, broken: `${lookAlike}${why}` }
}

const onlyText = 'its output is plain text, which decides nothing: print a JSON object, or exit with 2 to block'
const lookAlike = 'its output looks like JSON but is not a JSON object: an answer must be one object and nothing else'

function parsed(text: string): { readonly value?: unknown; readonly problem?: string } {
  try {
    return { value: parseExactly(text) }
  } catch (error) {
    return { problem: messageOf(error) }
  }
}

/** Whether a text contains a JSON object on its own line or at the end of one, or is a JSON array or string. */
function looksLikeJson(text: string, value: unknown): boolean {
  return /^\s*\{/m.test(text) || /\{\s*"[^]*\}$/.test(text) || typeof value === 'object' || typeof value === 'string'
}

/** Exit code 0 with an invalid answer. Plain text is valid, unless it looks like JSON. */
function withFailure({ isJson, answer, broken }: Printed): HandlerAnswer {
  if (isJson) return { ...answer, failed: 'invalidOutput' }
  return broken === undefined ? answer : { ...answer, problem: broken, failed: 'invalidOutput' }
}

/** Exit code 2 blocks, whatever the JSON decides; its other fields still apply. */
function blockedBy(
  { isJson, answer, broken }: Printed,
  { error, isUnread }: { readonly error: string; readonly isUnread: boolean },
  event: ClaudeEvent,
): HandlerAnswer {
  if (event === 'Elicitation' || event === 'ElicitationResult') return { block: { reason: error } }
  const problem = isJson ? answer.problem : (broken ?? (isUnread ? notRead : undefined))
  const valid = isJson && problem === undefined ? answer : {}
  const own = valid.block?.reason ?? (valid.permission?.decision === 'deny' ? valid.permission.reason : undefined)
  const { permission: _permission, request, ...rest } = valid
  return {
    ...(event === 'PermissionRequest' &&
      request?.behavior !== 'deny' && { hint: `its exit code 2 has no effect. ${requestForm}` }),
    ...(isAnswerText(error) && { hint: onStandardError }),
    ...(problem !== undefined && { problem }),
    ...rest,
    ...(request?.behavior === 'deny' && { request }),
    block: { reason: own ?? error },
  }
}

function isAnswerText(text: string): boolean {
  const { value } = parsed(text)
  return isJsonObject(value) && isAnswer(value)
}

const onStandardError =
  'its JSON is on standard error, where it has no effect: print it to standard output, and exit with 0'
const notRead = 'its output is ignored: with exit code 2, only standard error is read'

/** WorktreeCreate: the last line that is not empty is the path. Without a path, it blocks. */
function readPath({ exitCode, signal, stdout, stderr }: ProcessResult): HandlerAnswer {
  const lines = stdout.head.replace(ANSI, '').split('\n')
  const path = lines.findLast((line) => line.trim() !== '')?.trim()
  if (exitCode === 0 && path !== undefined) return { other: { worktreePath: path } }
  const error = stderr.head.trim()
  const how = exitCode === 0 ? 'it printed no path' : `it exited with ${exitCode ?? signal ?? 'a signal'}`
  return { block: { reason: error === '' ? how : error } }
}

// oxlint-disable-next-line no-control-regex -- terminal colours start with one
const ANSI = /\u001B(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001B]*(?:\u0007|\u001B\\))/g

/** Reads the JSON answer of an event. An invalid answer has no effect. */
export function readJson(value: unknown, event: ClaudeEvent): HandlerAnswer {
  if (!isJsonObject(value)) return invalidAnswer('it is not an object')
  const { decides, stops, specific, isSilent } = eventSpec(event)
  for (const [name, type] of topLevel) {
    if (value[name] !== undefined && typeof value[name] !== type) return invalidAnswer(`"${name}" must be a ${type}`)
  }
  const decision = value['decision']
  if (decision !== undefined && decision !== 'approve' && decision !== 'block') {
    return invalidAnswer(`"decision" must be "approve" or "block", not ${JSON.stringify(decision)}`)
  }
  const own = value['hookSpecificOutput']
  const specificAnswer = own === undefined ? {} : readSpecific(own, event, specific)
  if (typeof specificAnswer === 'string') return invalidAnswer(specificAnswer)
  const reason = stringIn(value['reason'])
  const { systemMessage, terminalSequence } = value
  const hint = hintFor(value, event)
  return {
    ...(hint !== undefined && { hint }),
    ...legacyPermission(decision, reason, event),
    ...specificAnswer,
    ...(decision === 'block' && decides === true && event !== 'PreToolUse' && { block: { reason } }),
    ...(value['continue'] === false && stops === true && { stop: { reason: stringIn(value['stopReason']) } }),
    ...(typeof systemMessage === 'string' && systemMessage !== '' && isSilent !== true && { systemMessage }),
    ...(typeof terminalSequence === 'string' && terminalSequence !== '' && { terminalSequence }),
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

/** The older form of `permissionDecision`. */
function legacyPermission(decision: Json | undefined, reason: string, event: ClaudeEvent): HandlerAnswer {
  if (event !== 'PreToolUse' || decision === undefined) return {}
  return { permission: { decision: decision === 'approve' ? 'allow' : 'deny', reason } }
}

/** Reads the answer of a `prompt` or `agent` handler. */
export function readVerdict(value: unknown, event: ClaudeEvent, continueOnBlock: boolean): HandlerAnswer {
  if (!isVerdict(value)) return failure('invalidOutput', 'the answer of the model is not { ok, reason }')
  if (value.ok) return {}
  const reason = value.reason ?? ''
  switch (event) {
    case 'Stop':
    case 'SubagentStop':
      return value.impossible === true ? {} : { block: { reason } }
    case 'PreToolUse':
      return { permission: { decision: 'deny', reason }, ...(!continueOnBlock && { stop: { reason } }) }
    case 'PostToolUse':
    case 'TeammateIdle':
      return continueOnBlock
        ? { block: { reason } }
        : { ...(event === 'PostToolUse' && { block: { reason } }), stop: { reason } }
    case 'PostToolBatch':
    case 'UserPromptSubmit':
    case 'UserPromptExpansion':
      return { block: { reason }, stop: { reason } }
    case 'PermissionRequest':
    case 'PermissionDenied':
      return {}
    default:
      return { block: { reason } }
  }
}

export type Verdict = { readonly ok: boolean; readonly reason?: string; readonly impossible?: boolean }

function isVerdict(value: unknown): value is Verdict {
  if (!isJsonObject(value) || typeof value['ok'] !== 'boolean') return false
  const { reason, impossible } = value
  return (
    (reason === undefined || reason === null || typeof reason === 'string') &&
    (impossible === undefined || typeof impossible === 'boolean')
  )
}

/** A failure has no effect except a warning, unless the handler has `onFailure: "block"`. */
export function failure(failed: Failure, problem: string): HandlerAnswer {
  return { problem, failed }
}

function invalidAnswer(problem: string): HandlerAnswer {
  return { problem: `its answer is invalid: ${problem}` }
}
