import type { JsonObject } from '../../../state/json.ts'
import { toNameTest } from '../../../hooks/patterns.ts'
import type { PlainTrigger } from '../../../hooks/triggers.ts'
import type { ClaudeEvent } from '../events/claude-events.ts'
import type { PromptHandler } from '../load/handlers.ts'
import { toMatcher } from '../events/matcher.ts'
import { namesOf, toolsWithOtherNames } from '../events/tool-names.ts'

/** A handler that asks as an entry of ours, and how it differs from what it was; or why it cannot be one. */
export type ImportedPrompt = { readonly entry: JsonObject; readonly differs: readonly string[] } | string

type Asked = {
  readonly on: PlainTrigger
  readonly mode: 'guard' | 'hook'
  readonly when?: JsonObject
  /** What a no does here that it did not do there. */
  readonly differs?: (handler: PromptHandler) => string | undefined
}

/** Where a no of a model means the same as there. */
const asked: { readonly [event in ClaudeEvent]?: Asked } = {
  PreToolUse: {
    on: 'beforeToolUse',
    mode: 'guard',
    differs: ({ continueOnBlock }) =>
      continueOnBlock ? undefined : 'a no denies the call and the model goes on with the reason; there the turn ended',
  },
  UserPromptSubmit: { on: 'onUserInput', mode: 'guard' },
  PostToolBatch: { on: 'afterStep', mode: 'guard', when: { stepType: 'toolExecution' } },
  Stop: {
    on: 'onStop',
    mode: 'hook', // what a guard cannot answer would be a stop that failed; there the turn just ended
    differs: () => 'there is no "impossible": after eight times in a row the run ends all the same',
  },
}

const reasons: { readonly [event in ClaudeEvent]?: string } = {
  PostToolUse: 'a no would withhold the result here, where there it is told beside it',
  PostToolUseFailure: 'a hook of its own cannot tell calls that failed from others',
  SubagentStop: 'a no would withhold what the subagent found, where there it goes on',
  PermissionRequest: 'its answer has no effect there either',
  PermissionDenied: 'its answer has no effect there either',
}

/** Tools that only read, with which an agent looks into an event. */
const reading = ['read_file', 'list_dir', 'search_files']
const MAX_STEPS = 50

export function importPrompt(event: ClaudeEvent, matcher: string | undefined, handler: PromptHandler): ImportedPrompt {
  const here = asked[event]
  if (here === undefined) return reasons[event] ?? 'a hook of its own has no such moment'
  if (handler.if !== undefined) return 'a hook that asks a model has no "if"'
  const tool = here.on === 'beforeToolUse' ? toolFor(matcher, event) : {}
  if (typeof tool === 'string') return tool
  const { type, model } = handler
  const prompt = questionOf(handler.prompt)
  const difference = here.differs?.(handler)
  const isAgent = type === 'agent'
  return {
    entry: {
      on: here.on,
      mode: here.mode,
      ...tool,
      ...(here.when !== undefined && { when: here.when }),
      timeoutMs: handler.timeoutMs,
      ...(isAgent ? { subagent: { prompt, tools: reading, maxSteps: MAX_STEPS } } : { prompt: { prompt } }),
    },
    differs: [
      ...(difference === undefined ? [] : [difference]),
      ...(model === undefined ? [] : [`it asks the model of the conversation; name one for "${model}" under "model"`]),
      ...(isAgent ? [`it looks with ${reading.join(', ')} of the agent it judges, if that has them`] : []),
    ],
  }
}

/** The event comes after the question, as data. `\$` is a dollar. */
function questionOf(template: string): string {
  return template.replace(/\\\$|\$ARGUMENTS/g, (found) => (found === '\\$' ? '$' : 'the event below'))
}

/** The same tools by the names that they have here, or why they cannot be named. */
function toolFor(matcher: string | undefined, event: ClaudeEvent): { readonly tool?: string } | string {
  if (matcher === undefined || matcher === '' || matcher === '*') return {}
  if (/^[A-Za-z0-9_\- ,|]+$/.test(matcher)) {
    const names = [...new Set(matcher.split(/[|,]/).flatMap((name) => namesOf(name.trim())))]
    return { tool: names.length === 1 ? names[0]! : `/^(?:${names.join('|')})$/` }
  }
  const { matches, problem } = toMatcher(matcher, event)
  if (problem !== undefined) return `its matcher cannot be read: ${problem}`
  const ours = toolsWithOtherNames.filter((name) => namesOf(name).some(matches))
  const pattern = ours.length === 0 ? matcher : `(?:${matcher})|^(?:${ours.join('|')})$`
  try {
    toNameTest(new RegExp(pattern))
    return { tool: `/${pattern}/` }
  } catch {
    return 'its matcher looks ahead or behind, which a "tool" cannot'
  }
}
