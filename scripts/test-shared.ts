// Runs many test files in one process, each as a suite of its own, so that `before` and `after` stay with their file.
// None of them may start a process: `npm run test:fast` runs only these.
import { ChildProcess } from 'node:child_process'
import { resolve } from 'node:path'
import { before, suite } from 'node:test'
import { pathToFileURL } from 'node:url'
import { report } from './test-reporter.ts'

Object.defineProperty(ChildProcess.prototype, 'spawn', {
  value: () => {
    throw new Error(
      'This test file starts a process, but nothing that it imports imports node:child_process. Import it where it is used.',
    )
  },
})

for (const file of process.argv.slice(2)) {
  suite(file, async () => {
    before(() => report({ type: 'started', title: file }))
    await import(pathToFileURL(resolve(file)).href)
  })
}
