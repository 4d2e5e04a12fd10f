import type { EntryWarning } from '../../../core/state/ledger.ts'
import { handlerPlace } from '../load/describe-handler.ts'
import type { EventResult, RanHandler } from '../run/run-event.ts'
import type { Payload } from '../events/common-payload.ts'
import type { HandlerAnswer } from './handler-answer.ts'
import type { MergedAnswer } from './merge-answers.ts'
import { isTerminalSequence } from './terminal-sequence.ts'

/** Messages for the user and problems of handlers, as warnings. */
export function warningsOf({ merged, ran, problems }: EventResult, { event }: Payload): readonly EntryWarning[] {
  const { decision, reason, systemMessage } = merged
  const isEnding = decision === 'stop' && reason !== '' && (event === 'Stop' || event === 'SubagentStop')
  const texts = [
    ...(systemMessage === undefined ? [] : [systemMessage]),
    ...problems,
    ...(isEnding ? [`${event} hook ended the run: ${reason}`] : []), // it ends anyway, with another reason
  ]
  return [...texts.map((message) => toWarning(message)), ...ran.flatMap((each) => handlerWarnings(each, event))]
}

function handlerWarnings(each: RanHandler, event: string): readonly EntryWarning[] {
  const { problem, hint, terminalSequence } = each.answer
  const isIgnored = terminalSequence !== undefined && !isTerminalSequence(terminalSequence)
  return [
    ...[problem, hint].filter((text) => text !== undefined),
    ...(isIgnored ? ['its "terminalSequence" is ignored: only titles, notifications and bells are allowed'] : []),
  ].map((text) => toWarning(`${event} hook: ${text}`, handlerPlace(each)))
}

export function toWarning(message: string, definedAt?: string): EntryWarning {
  return { code: 'ACTION_WARNING', message, ...(definedAt !== undefined && { definedAt }) }
}

/** The files and commands of the handlers behind a merged decision. */
export function decidedAt({ merged, ran }: EventResult): string | undefined {
  const deciding = ran.filter(({ answer }) => decides[merged.decision](answer)).map(handlerPlace)
  return deciding.length === 0 ? undefined : deciding.join('; ')
}

const decides: { readonly [D in MergedAnswer['decision']]: (answer: HandlerAnswer) => boolean } = {
  stop: ({ stop }) => stop !== undefined,
  deny: ({ block, permission, request, other }) =>
    block !== undefined ||
    permission?.decision === 'deny' ||
    request?.behavior === 'deny' ||
    typeof other?.['action'] === 'string',
  block: ({ block }) => block !== undefined,
  defer: ({ permission }) => permission?.decision === 'defer',
  ask: ({ permission }) => permission?.decision === 'ask',
  allow: ({ permission, request }) => permission?.decision === 'allow' || request?.behavior === 'allow',
  context: ({ context }) => context !== undefined,
  none: ({ updatedInput, updatedOutput }) => updatedInput !== undefined || updatedOutput !== undefined,
}
