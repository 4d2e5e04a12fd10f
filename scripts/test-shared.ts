// Runs many test files in one process, each as a suite of its own, so that `before` and `after` stay with their file.
// None of them may start a process: `npm run test:fast` runs only these.
import { ChildProcess } from 'node:child_process'
import { resolve } from 'node:path'
import { after, before, suite } from 'node:test'
import { pathToFileURL } from 'node:url'
import { report } from './test-reporter.ts'

Object.defineProperty(ChildProcess.prototype, 'spawn', {
  value: () => {
    throw new Error(
      'This test file starts a process, but nothing that it imports imports node:child_process. Import it where it is used.',
    )
  },
})

/** What tests mock. A method that is mocked twice is not restored, and would change the tests of other files. */
const shared = [
  [Math, 'random'],
  [performance, 'now'],
  [Date, 'now'],
  [globalThis, 'setTimeout'],
  [JSON, 'parse'],
] as const
const originals = shared.map(([owner, name]): unknown => Reflect.get(owner, name))

for (const file of process.argv.slice(2)) {
  suite(file, async () => {
    before(() => report({ type: 'started', title: file }))
    after(() => {
      const left = shared.filter(([owner, name], i) => Reflect.get(owner, name) !== originals[i])
      if (left.length > 0) throw new Error(`This file leaves mocked: ${left.map(([, name]) => name).join(', ')}`)
    })
    await import(pathToFileURL(resolve(file)).href)
  })
}
