import { count, shorten } from '../../values/text.ts'
import type { Change } from '../../core/state/ledger.ts'
import type { ReplayDecision, ReplayDifference, ReplayPlace } from './compare-ledgers.ts'
import type { ReplayReport } from './replay.ts'

const MAX_VALUE = 80

/**
 * The report of a replay as text. Steps are counted from one.
 *
 * @example
 * console.log(formatReplay(await replay(stored, { agent, hooks: [noPush] })))
 */
export function formatReplay(report: Omit<ReplayReport, 'run'>): string {
  const { events, differences, divergesAt, unjudged, record } = report
  return [
    `${count(events, 'decision')} judged again: ${differences.length === 0 ? 'nothing' : count(differences.length, 'decision')} would have differed.`,
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
  const { was, would, divergence } = difference
  const changes = would.flatMap((each) => each.changes ?? [])
  return [
    `  ${placeWords(difference)}`,
    `    was        ${decidedWords(was)}`,
    `    would be   ${decidedWords(would)}`,
    ...changes.map((change) => `    changed    ${changeWords(change)}`),
    ...(divergence === undefined ? [] : [`    so         ${divergence}`]),
  ]
}

function placeWords({ path = [], step, trigger, call }: ReplayPlace): string {
  const agents = path.map(({ agent }) => `${agent}, `).join('')
  return `${agents}step ${step + 1}, ${trigger}${call === undefined ? '' : `, ${call.name}`}`
}

/** Decisions as text, such as `block by no-push: Agents never push.` */
export function decidedWords(decisions: readonly ReplayDecision[]): string {
  const parts = decisions.map(({ hook, decision, message, error, changes }) => {
    const what = decision ?? (error === undefined && changes !== undefined ? 'changed' : 'failed')
    const why = error ?? message ?? ''
    return `${what} by ${hook}${why === '' ? '' : `: ${why}`}`
  })
  return parts.join('; ') || 'nothing'
}

function changeWords({ path, before, after }: Change): string {
  if (before === undefined && after === undefined) return path
  return `${path} ${before === undefined ? '' : `${short(before)} `}→ ${after === undefined ? 'nothing' : short(after)}`
}

function short(value: unknown): string {
  return shorten(JSON.stringify(value) ?? '', MAX_VALUE)
}
