import type { JsonObject } from '../../../values/json.ts'
import { toNameTest } from '../../../core/hooks/patterns.ts'
import type { PlainTrigger } from '../../../core/hooks/triggers.ts'
import type { ClaudeEvent } from '../events/claude-events.ts'
import type { PromptHandler } from '../load/handlers.ts'
import { toMatcher } from '../events/matcher.ts'
import { namesOf, toolsWithOtherNames } from '../events/tool-names.ts'

/** The entry for a handler, and how it differs from it, or why there is none. */
export type ImportedEntry = { readonly entry: JsonObject; readonly differs: readonly string[] } | string

type Asked = {
  readonly on: PlainTrigger
  readonly mode: 'guard' | 'hook'
  readonly when?: JsonObject
  /** How a block differs from Claude Code. */
  readonly differs?: (handler: PromptHandler) => string | undefined
}

/** Events at which a block has the same meaning as in Claude Code. */
const asked: { readonly [event in ClaudeEvent]?: Asked } = {
  PreToolUse: {
    on: 'beforeToolUse',
    mode: 'guard',
    differs: ({ continueOnBlock }) =>
      continueOnBlock
        ? undefined
        : 'a block denies the call and the model continues with the reason; in Claude Code the turn ends',
  },
  UserPromptSubmit: { on: 'onUserInput', mode: 'guard' },
  PostToolBatch: { on: 'afterStep', mode: 'guard', when: { stepType: 'toolExecution' } },
  Stop: {
    on: 'onStop',
    mode: 'hook', // a failing guard would fail the run; in Claude Code the turn just ends
    differs: () => 'there is no "impossible": the run ends after eight blocks in a row',
  },
}

const reasons: { readonly [event in ClaudeEvent]?: string } = {
  PostToolUse: 'a block would withhold the result; in Claude Code the model gets both',
  PostToolUseFailure: 'a single hook cannot tell failed calls from others',
  SubagentStop: 'a block would withhold the result of the subagent; in Claude Code the subagent continues',
  PermissionRequest: 'its answer has no effect in Claude Code either',
  PermissionDenied: 'its answer has no effect in Claude Code either',
}

/** The read-only tools of an inspecting agent. */
const reading = ['read_file', 'list_dir', 'search_files']
const MAX_STEPS = 50

export function importPrompt(event: ClaudeEvent, matcher: string | undefined, handler: PromptHandler): ImportedEntry {
  const here = asked[event]
  if (here === undefined) return reasons[event] ?? 'a single hook cannot have this event'
  if (handler.if !== undefined) return 'a hook that calls a model cannot have "if"'
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
      ...(model === undefined ? [] : [`it calls the model of the agent; set "model" to use "${model}"`]),
      ...(isAgent ? [`it uses ${reading.join(', ')} of the agent it judges, if that has them`] : []),
    ],
  }
}

/** The event is added after the question, as data. `\$` is a dollar sign. */
function questionOf(template: string): string {
  return template.replace(/\\\$|\$ARGUMENTS/g, (found) => (found === '\\$' ? '$' : 'the event below'))
}

/** The same tools by their names in Hookloop, or why that is not possible. */
function toolFor(matcher: string | undefined, event: ClaudeEvent): { readonly tool?: string } | string {
  if (matcher === undefined || matcher === '' || matcher === '*') return {}
  if (/^[A-Za-z0-9_\- ,|]+$/.test(matcher)) {
    const names = [...new Set(matcher.split(/[|,]/).flatMap((name) => namesOf(name.trim())))]
    return { tool: names.length === 1 ? names[0]! : `/^(?:${names.join('|')})$/` }
  }
  const { matches, problem } = toMatcher(matcher, event)
  if (problem !== undefined) return `its matcher is invalid: ${problem}`
  const ours = toolsWithOtherNames.filter((name) => namesOf(name).some(matches))
  const pattern = ours.length === 0 ? matcher : `(?:${matcher})|^(?:${ours.join('|')})$`
  try {
    toNameTest(new RegExp(pattern))
    return { tool: `/${pattern}/` }
  } catch {
    return 'its matcher uses lookaround, which "tool" does not support'
  }
}
