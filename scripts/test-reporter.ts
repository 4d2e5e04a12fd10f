// A test reporter (Node wants it as the default export) that writes each result to a file at once, so that the counts are right however the process ends.
import { appendFileSync } from 'node:fs'
import type { TestEvent } from 'node:test/reporters'

export type Result =
  | { readonly type: 'passed' | 'failed'; readonly title: string }
  /** What this machine cannot test, and why. */
  | { readonly type: 'notRun'; readonly title: string }
  /** A test file that shares its process with others. */
  | { readonly type: 'started'; readonly title: string }
  | { readonly type: 'ended'; readonly title: string; readonly ms: number; readonly failed: boolean }
  /** All tests of the process have ended. */
  | { readonly type: 'complete' }

export default async function* reporter(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const { name: title, nesting, details } = data
    if (details.type !== 'suite') report({ type: type === 'test:pass' ? 'passed' : 'failed', title })
    else if (nesting === 0) report({ type: 'ended', title, ms: details.duration_ms, failed: type === 'test:fail' })
  }
  report({ type: 'complete' })
  yield ''
}

export function report(result: Result): void {
  const file = process.env['HOOKLOOP_TEST_REPORT']
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(result)}\n`)
}
