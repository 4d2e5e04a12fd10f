// Runs the tests and ends with one line that anybody, or any CI, can read: `N passed, M failed`.
// Arguments narrow it down: `npm test hooks` runs the test files with "hooks" in their path.
// What property tests try is the same every time, so that a failure belongs to a change. `npm test -- --seed=random`, or
// with a number, tries something else.
import { randomInt } from 'node:crypto'
import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

const { values, positionals: wanted } = parseArgs({
  options: { seed: { type: 'string', default: '1' } },
  allowPositionals: true,
})
const seed = values.seed === 'random' ? randomInt(2 ** 31) : Number(values.seed)
if (!Number.isSafeInteger(seed)) {
  console.error('--seed is "random" or a whole number.')
  process.exit(1)
}

const files = globSync(['{hookloop/src,examples,bench,scripts}/**/*.test.ts'])
  .filter(
    (file) => !file.includes('node_modules') && (wanted.length === 0 || wanted.some((part) => file.includes(part))),
  )
  .toSorted()

if (files.length === 0) {
  console.error(`No test file has ${wanted.join(' or ')} in its path.`)
  process.exit(1)
}

process.env['HOOKLOOP_TEST_SEED'] = String(seed)
// Every test file is a process, and many start more: none of them has to compile what another one has.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, '../.cache/compiled')

let [passed, failed] = [0, 0]
const isTest = ({ details }: { details: { type?: string } }): boolean => details.type !== 'suite'
const preload = pathToFileURL(join(import.meta.dirname, 'chance.ts')).href
const execArgv = ['--conditions=hookloop-source', `--import=${preload}`]
const events = run({ files, concurrency: availableParallelism(), execArgv })
events.on('test:pass', (event) => (passed += isTest(event) ? 1 : 0))
events.on('test:fail', (event) => (failed += isTest(event) ? 1 : 0))
events.compose(new spec()).pipe(process.stdout)
events.on('end', () => {
  setImmediate(() => {
    console.log(`\n${passed} passed, ${failed} failed`)
    process.exitCode = failed === 0 && passed > 0 ? 0 : 1
  })
})
