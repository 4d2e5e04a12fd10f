import { listApprovals, type PendingApproval } from '../../sessions/session/approvals.ts'
import type { SessionStore } from '../../sessions/stores/store.ts'
import { askedHash, type Approval } from '../../core/state/tool-call.ts'
import { UsageError } from '../usage-error.ts'

const SHORT_LENGTH = 8
/** A shorter prefix could match an approval that the user has not reviewed. */
const MIN_LENGTH = 4

/**
 * The hash part of an approval id, which is derived from the arguments: as much of it as distinguishes it from the others,
 * or the complete id where others ask for the same call.
 */
export function shortId({ id }: Approval, others: readonly Approval[]): string {
  const own = hashPart(id)
  const rest = others.filter((other) => other.id !== id).map((other) => hashPart(other.id))
  for (let length = SHORT_LENGTH; length <= own.length; length++) {
    const short = own.slice(0, length)
    if (!rest.some((other) => other.startsWith(short))) return short
  }
  return id
}

/** The pending approval with this id, this hash part (after the `#`), or an unambiguous prefix of either. */
export function findApproval<A extends Approval>(pending: readonly A[], given: string): A {
  const same = pending.find(({ id }) => id === given)
  if (same !== undefined) return same
  const isTooShort = given.length < MIN_LENGTH
  const matches = isTooShort ? [] : pending.filter(({ id }) => id.startsWith(given) || hashPart(id).startsWith(given))
  if (matches.length === 1) return matches[0]!
  if (matches.length > 1) {
    const ids = matches.map(({ id }) => `  ${id}`).join('\n')
    throw new UsageError(`"${given}" matches ${matches.length} approvals. Use one of these ids:\n${ids}`)
  }
  const hint = isTooShort ? `Type at least ${MIN_LENGTH} characters.` : 'It may have been answered already.'
  throw new UsageError(`No pending approval has the id "${given}". ${hint}`)
}

/** The approvals that can be answered. One whose call does not match its id is forged, and is left out. */
export async function pendingApprovals(store: SessionStore): Promise<readonly PendingApproval[]> {
  return (await listApprovals(store)).filter(isAuthentic)
}

/** Whether the call that is shown is the one its id was derived from. */
export function isAuthentic(approval: Approval): boolean {
  const part = hashPart(approval.id)
  return askedHash(approval.toolCall, approval).startsWith(part) && part !== ''
}

function hashPart(id: string): string {
  return id.slice(id.lastIndexOf('#') + 1)
}
