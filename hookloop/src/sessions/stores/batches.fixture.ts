import type { JsonObject } from '../../state/json.ts'
import type { AppendOptions } from './store.ts'

/** The batches that tests write: of one to three lines, every other with a head, each known by its number alone. */
export function batchOf(number: number): [lines: string[], options?: AppendOptions] {
  const length = (number % 3) + 1
  const lines = Array.from({ length }, (_, i) => `${number}.${i + 1}.${length} ${'é'.repeat((number * 37) % 90)}`)
  return number % 2 === 0 ? [lines, { head: { batches: number + 1 } }] : [lines]
}

/** The number of the next batch; throws if the last one is incomplete. */
export function batchAfter(lines: readonly string[]): number {
  return wholeBatches({ lines })
}

/** How many batches a session holds; throws unless it holds exactly those, in order, with the head of the last. */
export function wholeBatches(session: { readonly lines: readonly string[]; readonly head?: JsonObject }): number {
  let [batches, at] = [0, 0]
  let head: JsonObject = {}
  while (at < session.lines.length) {
    const [lines, { head: newHead } = {}] = batchOf(batches++)
    const found = session.lines.slice(at, at + lines.length)
    if (found.join('\n') !== lines.join('\n')) throw new Error(`Batch ${batches - 1} is torn: ${found.join(' | ')}`)
    at += lines.length
    head = newHead ?? head
  }
  if (session.head !== undefined && JSON.stringify(session.head) !== JSON.stringify(head))
    throw new Error(`The head is ${JSON.stringify(session.head)}, after ${batches} batches`)
  return batches
}
