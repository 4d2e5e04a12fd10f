import type { JsonObject } from '../../state/json.ts'
import type { AppendOptions, SessionStore } from './store.ts'

/**
 * The batches that tests write: of one to three lines, every other with a head, each with three events of which the second is
 * transient, every fifth the start of a turn. Each is known by its number alone.
 */
export function batchOf(number: number): [lines: string[], options?: AppendOptions] {
  const length = (number % 3) + 1
  const lines = Array.from({ length }, (_, i) => `${number}.${i + 1}.${length} ${'é'.repeat((number * 37) % 90)}`)
  const [first, second, third] = [1, 2, 3].map((i) => ({ text: JSON.stringify({ seq: 3 * number + i, number }) }))
  const events = [{ ...first!, startsTurn: number % 5 === 0 }, { ...second!, transient: true }, third!]
  return [lines, { events, ...(number % 2 === 0 && { head: { batches: number + 1 } }) }]
}

/**
 * The number of batches in a session. Throws unless its log has the events of those, and nothing else. A process that died may
 * have left transient events of the turn before.
 */
export async function checkEvents(store: SessionStore, id: string): Promise<number> {
  const writer = await store.open(id) // nothing of a process that died is stored after this
  const batches = wholeBatches(await writer.read())
  await writer.release()
  const seqs: number[] = []
  const turn = 15 * Math.floor((batches - 1) / 5)
  if (batches > 0)
    for await (const { seq } of store.watch(id)) {
      seqs.push(seq)
      if (seq >= 3 * batches) break
    }
  const all = Array.from({ length: 3 * batches }, (_, i) => i + 1)
  const expected = all.filter((seq) => seq % 3 !== 2 || seq > turn || seqs.includes(seq))
  if (seqs.join() !== expected.join()) throw new Error(`Of ${batches} batches there are the events ${seqs.join()}`)
  if (writer.eventSeq !== 3 * batches) throw new Error(`After ${batches} batches, the last event is ${writer.eventSeq}`)
  return batches
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
