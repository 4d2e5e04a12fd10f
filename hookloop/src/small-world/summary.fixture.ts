import type { AgentState } from '../index.ts'
import { canonical } from './world.fixture.ts'

// What two histories of the same agent must agree on: all but ids, times, and how often the run was paused.

export type Summary = { readonly [what: string]: unknown }

export function summaryOf(state: AgentState | undefined): Summary {
  if (state === undefined) return {}
  const { messages, metadata, systemPrompt, usage, executionCount, execution } = state
  const { paused: _paused, trace, ...kept } = metadata
  const { status, reason, by, message } = execution?.final ?? {}
  const steps = [...(execution?.steps ?? [])].map(
    ({ index, type, text, toolCalls, toolExecutions, errors, finishReason, usage: spent }) => ({
      index,
      type,
      text,
      toolCalls,
      toolExecutions,
      errors,
      finishReason,
      spent,
    }),
  )
  return {
    trace,
    messages: [...messages],
    metadata: kept,
    systemPrompt,
    usage,
    executionCount,
    steps,
    final: { status, reason, by, message },
  }
}

/** Where two summaries differ. */
export function differencesOf(expected: unknown, got: unknown, path = ''): readonly string[] {
  if (canonical(expected) === canonical(got)) return []
  if (!isObject(expected) || !isObject(got)) return [`${path}: expected ${canonical(expected)}, got ${canonical(got)}`]
  const names = [...new Set([...Object.keys(expected), ...Object.keys(got)])]
  return names.flatMap((name) => differencesOf(expected[name], got[name], path === '' ? name : `${path}.${name}`))
}

function isObject(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === 'object' && value !== null
}
