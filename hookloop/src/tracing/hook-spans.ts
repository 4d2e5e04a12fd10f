import type { Context } from '@opentelemetry/api'
import { attributes } from './conventions.ts'
import type { HookTime, Noted } from './hook-times.ts'
import type { Spans } from './spans.ts'

/** Which hook invocations get a span: those that decided or changed something or failed, or none. */
export type HooksShown = 'decisions' | 'none'

export function isShown(entry: Noted, hooks: HooksShown): boolean {
  return hooks !== 'none' && !isInToolSpan(entry) && hasOpinion(entry)
}

export function addHookSpan(spans: Spans, { entry, start, end }: HookTime, parent: Context): void {
  const { hook, mode, trigger, decision, changes, call, message, error } = entry
  spans.add(['hook', hook], {
    at: start,
    until: end,
    parent,
    facts: {
      [attributes.hook]: hook,
      [attributes.hookMode]: mode,
      [attributes.hookTrigger]: trigger,
      ...(decision !== undefined && { [attributes.hookDecision]: decision }),
      ...(changes !== undefined && { [attributes.hookChanges]: changes.length }),
      ...(call !== undefined && { [attributes.toolCall]: call }),
    },
    content: () => (message === undefined ? {} : { [attributes.hookMessage]: message }),
    ...(error !== undefined && { error: { code: 'HOOK_FAILED', message: error } }),
  })
}

/** The outcome of a tool is in its own span. */
function isInToolSpan({ mode, trigger }: Noted): boolean {
  return mode === 'loop' && trigger === 'aroundToolUse'
}

function hasOpinion({ decision, changes, error }: Noted): boolean {
  return (decision !== undefined && decision !== 'skipped') || changes !== undefined || error !== undefined
}
