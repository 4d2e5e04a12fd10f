import { stringIn } from '../../hook-files/text.ts'
import { SUBAGENT_KEY } from '../../core/state/agent-state.ts'
import { SKILLS_WITH_HOOKS_KEY } from '../../hook-files/active-owners.ts'
import type { HandlerAnswer } from '../../hook-files/claude/answer/handler-answer.ts'
import { eventSpec, type ClaudeEvent } from '../../hook-files/claude/events/claude-events.ts'
import type { Payload } from '../../hook-files/claude/events/common-payload.ts'
import { fromClaudeInput, ownName, toClaudeCall } from '../../hook-files/claude/events/tool-names.ts'
import type { FileHook, FileSource } from '../../hook-files/files/hook-file.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import { textMessage, textOf } from '../../core/state/message.ts'
import { messageOf } from '../../errors.ts'
import type { Hook } from '../../core/hooks/hook.ts'
import type { HookOutcome } from '../../core/hooks/outcome.ts'
import { toNameTest } from '../../core/hooks/patterns.ts'
import type { PlainTrigger } from '../../core/hooks/triggers.ts'
import { fire } from '../../testing/fire.ts'

/** A hook from a file that ran, and its answer in the format of Claude Code. */
export type FiredHook = { readonly hook: FileHook; readonly answer: HandlerAnswer; readonly durationMs: number }

/**
 * Runs the hooks from files for the trigger of an event, one after the other: each gets what the one before changed.
 * `skills` are the active skills.
 */
export async function fireFileHooks(
  hooks: readonly FileHook[],
  payload: Payload,
  skills?: Json,
): Promise<readonly FiredHook[]> {
  const active = Array.isArray(skills) ? skills : []
  const { trigger: known, isOnDemand } = eventSpec(payload.event)
  const trigger = isOnDemand === true ? undefined : known
  const fired: FiredHook[] = []
  const facts: { [name: string]: unknown } = { ...factsOf(payload), metadata: metadataOf(payload, active) }
  for (const each of inOrder(
    hooks.filter(({ hook, source }) => isFor(hook, trigger, facts) && isActive(source, payload, active)),
  )) {
    const started = performance.now()
    const answered = (answer: HandlerAnswer): void =>
      void fired.push({ hook: each, answer, durationMs: performance.now() - started })
    try {
      const outcome = await fire(each.hook as never, trigger as never, facts as never)
      if (outcome.args !== undefined) facts['toolCall'] = { ...(facts['toolCall'] as JsonObject), args: outcome.args }
      answered(answerOf(outcome, payload, facts))
    } catch (error) {
      answered({ problem: messageOf(error) })
    }
  }
  return fired
}

/** The agent and the active skills of the payload: they activate hooks. */
function metadataOf({ input: { agent_type: name } }: Payload, skills: readonly Json[]): JsonObject {
  return {
    [SKILLS_WITH_HOOKS_KEY]: skills,
    ...(typeof name === 'string' && { [SUBAGENT_KEY]: { name, depth: 1 } }),
  }
}

function isActive({ kind, owner }: FileSource, { input }: Payload, skills: readonly Json[]): boolean {
  if (owner === undefined) return true
  return kind === 'skill' ? skills.includes(owner) : input['agent_type'] === owner
}

function isFor(
  { triggers, tool }: Hook,
  trigger: PlainTrigger | undefined,
  facts: { readonly [name: string]: unknown },
): boolean {
  if (trigger === undefined || !triggers.includes(trigger)) return false
  const { name } = (facts['toolCall'] ?? {}) as { readonly name?: string }
  if (name === undefined || !(typeof tool === 'string' || tool instanceof RegExp)) return true
  return toNameTest(tool)(name)
}

/** Transforms first, then guards, then observers; by priority within each. */
function inOrder(hooks: readonly FileHook[]): readonly FileHook[] {
  const modes = ['transform', 'guard', 'observe']
  return hooks.toSorted(
    ({ hook: a }, { hook: b }) => modes.indexOf(a.mode) - modes.indexOf(b.mode) || b.priority - a.priority,
  )
}

function factsOf({ event, input }: Payload): { [name: string]: unknown } {
  const name = ownName(stringIn(input['tool_name']))
  const args = isJsonObject(input['tool_input']) ? fromClaudeInput(name, input['tool_input']) : {}
  const toolCall = { id: stringIn(input['tool_use_id']) || 'call', name, args }
  switch (event) {
    case 'UserPromptSubmit':
      return { input: textMessage('user', stringIn(input['prompt'])) }
    case 'PreToolUse':
    case 'PermissionRequest':
      return { toolCall }
    case 'PostToolUse':
      return { toolCall, toolExecution: { status: 'ok', output: input['tool_response'] ?? null } }
    case 'PostToolUseFailure':
      return { toolCall, toolExecution: { status: 'failed', output: input['error'] ?? null } }
    case 'SessionStart':
      return { source: stringIn(input['source']) }
    case 'SessionEnd':
      return { reason: stringIn(input['reason']) }
    default:
      return {}
  }
}

function answerOf(
  outcome: HookOutcome,
  { event, input }: Payload,
  facts: { readonly [name: string]: unknown },
): HandlerAnswer {
  const { decision, message: reason = '', votes = [], args, output, state } = outcome
  const stop = votes.find((vote) => vote.decision === 'forbidContinuation')
  const more = votes.find((vote) => vote.decision === 'requestContinuation')
  const context = (state?.appended ?? []).map(({ content }) => textOf(content)).join('\n')
  const call = facts['toolCall'] as { readonly name: string } | undefined
  return {
    ...verdictOf(event, decision, reason),
    ...(more !== undefined && { block: { reason: more.message } }),
    ...(stop !== undefined && { stop: { reason: stop.message } }),
    ...(args !== undefined &&
      call !== undefined && { updatedInput: toClaudeCall(call.name, args, stringIn(input['cwd'])).input }),
    ...(output !== undefined && { updatedOutput: output }),
    ...(context !== '' && { context }),
  }
}

function verdictOf(event: ClaudeEvent, decision: HookOutcome['decision'], reason: string): HandlerAnswer {
  if (decision === undefined) return {}
  if (event === 'PreToolUse') return { permission: { decision: decision === 'block' ? 'deny' : decision, reason } }
  return decision === 'block' ? { block: { reason } } : {}
}
