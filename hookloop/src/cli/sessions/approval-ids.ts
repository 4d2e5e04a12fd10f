import { askedHash, type Approval } from '../../state/tool-call.ts'
import { UsageError } from '../usage-error.ts'

const SHORT = 8
/** Fewer characters could fit a question that nobody has looked at. */
const LEAST = 4

/**
 * The part of an id that says what was asked for: it is made from the arguments. As much of it as tells it from the
 * others, or the whole id where they ask for the same.
 */
export function shortId({ id }: Approval, others: readonly Approval[]): string {
  const own = hashPart(id)
  const rest = others.filter((other) => other.id !== id).map((other) => hashPart(other.id))
  for (let length = SHORT; length <= own.length; length++) {
    const short = own.slice(0, length)
    if (!rest.some((other) => other.startsWith(short))) return short
  }
  return id
}

/** The question that is meant: its id, the part after the `#`, or the beginning of either. */
export function findApproval<A extends Approval>(pending: readonly A[], given: string): A {
  const exactly = pending.find(({ id }) => id === given)
  if (exactly !== undefined) return exactly
  const fitting =
    given.length < LEAST ? [] : pending.filter(({ id }) => id.startsWith(given) || hashPart(id).startsWith(given))
  if (fitting.length === 1) return fitting[0]!
  if (fitting.length > 1) {
    const ids = fitting.map(({ id }) => `  ${id}`).join('\n')
    throw new UsageError(`"${given}" fits ${fitting.length} questions. Say which one:\n${ids}`)
  }
  const hint = given.length < LEAST ? `An id has at least ${LEAST} characters.` : 'It may have been answered already.'
  throw new UsageError(`No question with the id "${given}" waits for an answer. ${hint}`)
}

/** Whether what is shown of a question is what its id stands for. */
export function isTrue({ id, toolCall, interruptions }: Approval): boolean {
  return askedHash(toolCall, interruptions).startsWith(hashPart(id)) && hashPart(id) !== ''
}

function hashPart(id: string): string {
  return id.slice(id.lastIndexOf('#') + 1)
}
