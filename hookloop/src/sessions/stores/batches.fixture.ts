import type { JsonObject } from '../../values/json.ts'
import type { AppendOptions, SessionStore } from './store.ts'

/**
 * The batches that tests write: of one to three lines, every other with a head, each with two pieces, every fifth the start of
 * a turn. Each is known by its number alone.
 */
export function batchOf(number: number): [lines: string[], options?: AppendOptions] {
  const length = (number % 3) + 1
  const lines = Array.from({ length }, (_, i) => `${number}.${i + 1}.${length} ${'é'.repeat((number * 37) % 90)}`)
  const pieces = [1, 2].map((i) => ({ seq: 2 * number + i, text: String(number) }))
  return [lines, { pieces, startsTurn: number % 5 === 0, ...(number % 2 === 0 && { head: { batches: number + 1 } }) }]
}

/** The number of batches in a session. Throws unless it has the pieces of the last turn, and nothing else. */
export async function checkPieces(store: SessionStore, id: string): Promise<number> {
  const writer = await store.open(id) // nothing of a process that died is stored after this
  const stored = (await store.read(id, { pieces: { after: -1, before: Infinity } }))!
  await writer.release()
  const batches = wholeBatches(stored)
  const seqs = stored.pieces!.map(({ seq }) => seq)
  const turn = 5 * Math.floor((batches - 1) / 5)
  const expected = batches === 0 ? [] : Array.from({ length: 2 * (batches - turn) }, (_, i) => 2 * turn + i + 1)
  if (seqs.join() !== expected.join()) throw new Error(`Of ${batches} batches there are the pieces ${seqs.join()}`)
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
