import { test, type TestContext } from 'node:test'

/** Defines a test only where this machine can run it. Elsewhere there is no test, instead of one that passes without checking. */
export function testIf(isPossible: boolean): (title: string, body: (t: TestContext) => Promise<void> | void) => void {
  return (title, body) => {
    if (isPossible) void test(title, body)
  }
}
