// Runs the tests and ends with one line that anybody, or any CI, can read: `N passed, M failed`.
// Arguments narrow it down: `npm test hooks` runs the test files with "hooks" in their path.
import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'

const wanted = process.argv.slice(2)
const files = globSync(['{hookloop/src,examples,bench,scripts}/**/*.test.ts'])
  .filter(
    (file) => !file.includes('node_modules') && (wanted.length === 0 || wanted.some((part) => file.includes(part))),
  )
  .toSorted()

if (files.length === 0) {
  console.error(`No test file has ${wanted.join(' or ')} in its path.`)
  process.exit(1)
}

// Every test file is a process, and many start more: none of them has to compile what another one has.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, '../.cache/compiled')

let [passed, failed] = [0, 0]
const isTest = ({ details }: { details: { type?: string } }): boolean => details.type !== 'suite'
const events = run({ files, concurrency: availableParallelism(), execArgv: ['--conditions=hookloop-source'] })
events.on('test:pass', (event) => (passed += isTest(event) ? 1 : 0))
events.on('test:fail', (event) => (failed += isTest(event) ? 1 : 0))
events.compose(new spec()).pipe(process.stdout)
events.on('end', () => {
  setImmediate(() => {
    console.log(`\n${passed} passed, ${failed} failed`)
    process.exitCode = failed === 0 && passed > 0 ? 0 : 1
  })
})
