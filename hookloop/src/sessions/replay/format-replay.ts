import { checkArgument, checkNoOptions } from '../../state/check-options.ts'
import { isJsonObject } from '../../state/json.ts'
import { count, shorten } from '../../state/text.ts'
import type { Change } from '../../state/ledger.ts'
import type { Decided } from './compare-judged.ts'
import type { ReplayDifference, ReplayPlace, ReplayReport } from './replay.ts'

const MAX_VALUE = 80

/**
 * The report of a replay as text. Steps are counted from one.
 *
 * @example
 * console.log(formatReplay(await replay(recording, { agent, input: 'Hello.', hooks: [noPush] })))
 */
export function formatReplay(report: ReplayReport, ...more: []): string {
  checkNoOptions('formatReplay', more)
  const isReport = isJsonObject(report) && Array.isArray(report.differences)
  checkArgument('formatReplay', ['report', report], isReport, 'the report of replay()')
  const { events, differences, divergesAt, unjudged, record } = report
  return [
    `${count(events, 'event')} judged again: ${differences.length === 0 ? 'nothing' : count(differences.length, 'decision')} would have differed.`,
    ...(record.status === 'complete' ? [] : [`  the record   is ${words[record.status]}: ${record.message ?? ''}`]),
    ...(divergesAt === undefined ? [] : [`  diverges at  ${placeWords(divergesAt)}: ${divergesAt.why}`]),
    ...differences.flatMap(differenceLines),
    ...unjudged.map(({ hook, why }) => `  not judged   ${hook}: ${why}`),
  ].join('\n')
}

const words = {
  incomplete: 'incomplete, and was judged up to its end',
  diverged: 'of another agent, and was judged up to where it diverges',
}

function differenceLines(difference: ReplayDifference): readonly string[] {
  const { was, would, changes = [], divergence } = difference
  return [
    `  ${placeWords(difference)}`,
    ...(Object.keys({ ...was, ...would }).length === 0
      ? []
      : [`    was        ${decidedWords(was)}`, `    would be   ${decidedWords(would)}`]),
    ...changes.map((change) => `    changed    ${changeWords(change)}`),
    ...(divergence === undefined ? [] : [`    so         ${divergence}`]),
  ]
}

function placeWords({ step, trigger, call }: ReplayPlace): string {
  return `step ${step + 1}, ${trigger}${call === undefined ? '' : `, ${call.name}`}`
}

/** A decision as text, such as `block by no-push: Agents never push.` */
export function decidedWords({ verdict, votes = [], recovery, error }: Decided): string {
  const parts = [
    ...(verdict === undefined ? [] : [`${verdict.decision} by ${verdict.by}: ${verdict.message}`]),
    ...votes.map(({ decision, source, message }) => `${decision} by ${source}: ${message}`),
    ...(recovery === undefined ? [] : [`${recovery.decision} by ${recovery.by}`]),
    ...(error === undefined ? [] : [error]),
  ]
  return parts.join('; ') || 'nothing'
}

function changeWords({ path, before, after }: Change): string {
  if (before === undefined && after === undefined) return path
  return `${path} ${before === undefined ? '' : `${short(before)} `}→ ${after === undefined ? 'nothing' : short(after)}`
}

function short(value: unknown): string {
  return shorten(JSON.stringify(value) ?? '', MAX_VALUE)
}
