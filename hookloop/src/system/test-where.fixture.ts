import { test, type TestContext } from 'node:test'

/** A test that only some machines can make: elsewhere there is none, rather than one that passes for nothing. */
export function testWhere(
  isPossible: boolean,
): (title: string, body: (t: TestContext) => Promise<void> | void) => void {
  return (title, body) => {
    if (isPossible) void test(title, body)
  }
}
