import type { ClaudeEvent } from '../../hook-files/claude/events/claude-events.ts'
import { mergeAnswers } from '../../hook-files/claude/answer/merge-answers.ts'
import { shortName, wordsOf } from '../../hook-files/claude/load/handlers.ts'
import type { EventResult, RanHandler } from '../../hook-files/claude/run/run-event.ts'
import { colorsFor } from '../terminal/colors.ts'
import { jsonText } from '../terminal/json.ts'
import { oneLine, printable } from '../terminal/printable.ts'
import type { CliContext } from '../cli-context.ts'
import type { FiredHook } from './fire-file-hooks.ts'

/** The result of one event: handlers of Claude Code, handlers that run in the background, and hooks in `.hookloop/`. */
type TestedEvent = EventResult & { readonly late: readonly RanHandler[]; readonly own: readonly FiredHook[] }

/** The `--json` report. A field that no hook has set is null. */
export function reportOf({ merged, ran, problems, late, own }: TestedEvent, event: ClaudeEvent): object {
  return {
    decision: merged.decision,
    reason: isDecided(merged.decision) ? merged.reason : null,
    ...(merged.alsoDecided !== undefined && { alsoDecided: merged.alsoDecided }),
    updatedInput: merged.updatedInput ?? null,
    updatedOutput: merged.updatedOutput ?? null,
    additionalContext: merged.additionalContext ?? null,
    systemMessage: merged.systemMessage ?? null,
    ...(merged.other !== undefined && { other: merged.other }),
    hooks: [
      ...own.map((each) => ownReport(each, event)),
      ...ran.map((each) => hookReport(each, event)),
      ...late.map((each) => ({ ...hookReport(each, event), decision: 'none', reason: null, async: true })),
    ],
    ...(problems.length > 0 && { problems }),
  }
}

function ownReport({ hook: { hook, source, line }, answer, durationMs }: FiredHook, event: ClaudeEvent): object {
  const { decision, reason } = mergeAnswers([answer], event)
  const { name, mode, action } = hook
  return {
    type: action?.kind ?? 'hook',
    name,
    mode: mode === 'transform' ? 'hook' : mode,
    source: `${source.file}:${line}`,
    decision,
    reason: isDecided(decision) ? reason : null,
    ...(answer.problem !== undefined && { problem: answer.problem }),
    durationMs: Math.round(durationMs),
  }
}

function hookReport({ handler, source, matcher, answer, durationMs }: RanHandler, event: ClaudeEvent): object {
  const { request, context } = answer
  const { decision, alsoDecided, ...merged } = mergeAnswers([answer], event)
  return {
    type: handler.type,
    ...(handler.type === 'command' && { command: [wordsOf(handler)].flat().join(' ') }),
    ...(handler.type === 'http' && { url: handler.url }),
    matcher: matcher ?? null,
    source: source.file,
    decision,
    reason: isDecided(decision) ? merged.reason : null,
    ...(alsoDecided !== undefined && { alsoDecided }),
    exitCode: answer.exitCode ?? null,
    failed: answer.failed ?? null,
    problem: answer.problem ?? null,
    ...(answer.hint !== undefined && { hint: answer.hint }),
    updatedInput: answer.updatedInput ?? (request?.behavior === 'allow' ? request.updatedInput : undefined) ?? null,
    updatedOutput: answer.updatedOutput ?? null,
    additionalContext: context ?? null,
    systemMessage: answer.systemMessage ?? null,
    durationMs: Math.round(durationMs),
  }
}

function isDecided(decision: string): boolean {
  return decision !== 'context' && decision !== 'none'
}

/** The same as text. */
export function reportText(
  { merged, ran, late, own }: TestedEvent,
  { event, out, env }: Pick<CliContext, 'out' | 'env'> & { readonly event: ClaudeEvent },
): string {
  const { bold, dim, red, green, yellow } = colorsFor(out, env)
  const paint = { deny: red, block: red, stop: red, ask: yellow, defer: yellow, allow: green, context: dim, none: dim }
  const lines = [
    decided(bold(merged.decision), merged.reason),
    ...(merged.alsoDecided === undefined
      ? []
      : [`${dim('also')} ${decided(merged.alsoDecided.decision, merged.alsoDecided.reason)}`]),
    ...(['updatedInput', 'updatedOutput', 'additionalContext', 'systemMessage', 'other'] as const).flatMap((name) =>
      merged[name] === undefined ? [] : [`${dim(name)} ${printable(jsonText(merged[name]))}`],
    ),
    ...[
      ...own.map((each) => ({ ...each, what: each.hook.hook.name, name: each.hook.hook.name, decides: true })),
      ...ran.map((each) => ({ ...each, what: commandOf(each), name: shortName(each.handler), decides: true })),
      ...late.map((each) => ({ ...each, what: commandOf(each), name: shortName(each.handler), decides: false })),
    ].map(({ what, name, answer, durationMs, decides }) => {
      const decision = decides ? mergeAnswers([answer], event).decision : 'none'
      const problem = (answer.problem ?? answer.hint)?.replace(`${name} `, '') // the line starts with the command
      const mark = paint[decision](decision.padEnd(WIDEST))
      return `  ${mark} ${oneLine(what, 80)} ${dim(`${Math.round(durationMs)} ms`)}${problem === undefined ? '' : ` ${red(printable(problem))}`}`
    }),
  ]
  return `${lines.join('\n')}\n`
}

/** The width of the longest decision, `context`. */
const WIDEST = 7

function decided(decision: string, reason: string): string {
  return `${decision}${reason === '' ? '' : `: ${printable(reason)}`}`
}

function commandOf({ handler }: RanHandler): string {
  return handler.type === 'command' ? handler.command : handler.type
}
