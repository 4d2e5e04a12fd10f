import type { JsonObject } from '../values/json.ts'
import type { SessionStore, SessionWriter } from '../sessions/stores/store.ts'

// What the cases of the store contract have in common.

export type Scene = {
  /** Another store with the same sessions, like one in another process. */
  readonly store: () => Promise<SessionStore>
  /** Stops the renewal of leases from now on. */
  readonly silence: () => void
}

/** One test of the contract. */
export type Case = readonly [title: string, check: (scene: Scene) => Promise<void>]

export const badIds = [
  ['', ' ', '\n', 'a\n', 'a\0', '\u001b[31m', 'a\u0085', 'a\u2028b', 'x\ud800', 'x'.repeat(257), 'x'.repeat(5000)],
  [undefined, null, 1, {}, ['a']] as unknown as string[],
].flat()

/** Ids that could be taken for paths, queries, patterns, devices or each other. */
export const oddIds = [
  ...'. .. ../x ../../o/x a/b a\\b /etc/passwd %2e%2e %2E%2E a.jsonl -rf _a a. A. .deleted-x head.json'.split(' '),
  ...'é e\u0301 会 a:b ann@acme.example|chat:1 CON con Con nul com1 A a 😀 * % %- x_ xy __proto__ constructor'.split(
    ' ',
  ),
  ...'ﬁ fi \u212a K k ß SS İ i 👩\u200d👩\u200d👧'.split(' '),
  'a b',
  ' a',
  'a ',
  "a'--",
  'x'.repeat(129),
  '会'.repeat(200),
  `${'会'.repeat(199)}!`,
  '😀'.repeat(128),
]

export const oddLines = [
  '',
  ' ',
  '{"batch":{"lines":9}}',
  '{"hookloop":"session","version":9}',
  '{"__proto__":{"polluted":true},"constructor":{"prototype":{}}}',
  `'); DROP TABLE sessions; --`,
  `$1 %s ? :id @id \${x} \\ \\n "quoted" 'quoted' \`ticks\``,
  '\ufeff\u2028\r\t\u0001 é 会 😀',
  '{"n":1e400,"deep":[[[]]]}',
]

export async function write(
  sessions: SessionStore,
  id: string,
  lines: readonly string[],
  head?: JsonObject,
): Promise<void> {
  const writer: SessionWriter = await sessions.open(id, { create: true })
  await writer.append(lines, { head })
  await writer.release()
}

export async function linesOf(sessions: SessionStore, id: string): Promise<readonly string[] | undefined> {
  return (await sessions.read(id))?.lines
}

/** The code that a call throws or rejects with; 'none' if it succeeds. */
export async function codeOf(call: () => unknown): Promise<string> {
  try {
    await call()
    return 'none'
  } catch (error) {
    return String((error as { code?: unknown }).code ?? error)
  }
}

export function idsOf(listed: readonly { readonly id: string }[]): readonly string[] {
  return listed.map(({ id }) => id)
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

export function same(actual: unknown, expected: unknown): void {
  const assert: typeof import('node:assert/strict') = process.getBuiltinModule('node:assert/strict')
  assert.deepEqual(actual, expected)
}
