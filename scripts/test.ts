// Runs the tests and ends with the line `N passed, M failed`.
//   npm test hooks             runs the test files with "hooks" in their path, and prints all titles
//   npm run test:fast          runs the test files that start no process
//   npm run test:soak          runs everything, with more killed processes and more property runs (hours)
//   npm test -- --times        also prints the slowest files
//   npm test -- --seed=random  lets property tests draw other values, as does a number. The default is always the same,
//                              so that a failure belongs to a change.
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { modulesOf } from './module-graph.ts'
import type { Result } from './test-reporter.ts'

const { values, positionals: wanted } = parseArgs({
  options: {
    fast: { type: 'boolean', default: false },
    soak: { type: 'boolean', default: false },
    times: { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
  },
  allowPositionals: true,
})
const seed = values.seed === 'random' ? randomInt(2 ** 31) : Number(values.seed)
if (!Number.isSafeInteger(seed)) stop('--seed is "random" or a whole number.')

/** What one process runs: a file that may start processes, or many files that do not. */
type Job = { readonly name: string; readonly files: readonly string[] }

const TEST_TIMEOUT_MS = 300_000 * (values.soak ? 10 : 1)
const JOB_TIMEOUT_MS = 4 * TEST_TIMEOUT_MS
const CPUS = availableParallelism()

const files = globSync('{hookloop/src,examples,bench,scripts}/**/*.test.ts')
  .filter((file) => !file.includes('node_modules'))
  .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)))
  .toSorted()
const starting = files.filter((file) => modulesOf(file).has('node:child_process'))
/** The tests that wait longest are in the last folders. Started first, nothing is left to wait for at the end. */
const jobs = [
  ...(values.fast ? [] : starting.toReversed().map((file): Job => ({ name: file, files: [file] }))),
  ...inGroups(files.filter((file) => !starting.includes(file))),
]
if (jobs.length === 0) stop(`No test file has ${wanted.join(' or ') || '".test.ts"'} in its path.`)

const folder = mkdtempSync(join(tmpdir(), 'hookloop-tests-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))

const counts = { passed: 0, failed: 0 }
const failures: string[] = []
const notRun = new Set<string>()
const times: { readonly name: string; readonly ms: number; readonly cpu?: number }[] = []
const queue = jobs.entries()
// One more than there are processors, because many tests wait for other processes.
await Promise.all(Array.from({ length: values.fast ? CPUS : CPUS + 1 }, runJobs))

if (values.times) printTimes()
if (failures.length > 0) console.log(`\nFailed:\n  ${failures.join('\n  ')}`)
for (const what of notRun) console.log(`\nNOT RUN: ${what}`)
console.log(`\n${counts.passed} passed, ${counts.failed} failed`)
process.exitCode = counts.failed === 0 && counts.passed > 0 ? 0 : 1

async function runJobs(): Promise<void> {
  for (const [number, job] of queue) await runJob(number, job)
}

async function runJob(number: number, { name, files: inJob }: Job): Promise<void> {
  const shared = inJob.length > 1
  const paths = { report: join(folder, `${number}.report`), times: join(folder, `${number}.times`) }
  const child = spawn(
    process.execPath,
    [
      '--conditions=hookloop-source',
      `--import=${new URL('test-setup.ts', import.meta.url).href}`,
      `--test-timeout=${TEST_TIMEOUT_MS}`,
      '--test-reporter=spec',
      '--test-reporter-destination=stdout',
      `--test-reporter=${new URL('test-reporter.ts', import.meta.url).href}`,
      '--test-reporter-destination=stderr',
      ...(shared ? [join(import.meta.dirname, 'test-shared.ts')] : []),
      ...inJob,
    ],
    { env: environment(paths), stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const started = performance.now()
  let isLate = false
  const late = setTimeout(() => (isLate = child.kill('SIGKILL')), JOB_TIMEOUT_MS)
  const end = await new Promise<string | number>((resolve) => {
    child.on('exit', (code, signal) => isLate && resolve(signal ?? code!)) // its own children may keep the output open
    child.on('close', (code, signal) => resolve(signal ?? code!))
  })
  clearTimeout(late)
  const ms = performance.now() - started

  const results = readLines(paths.report).map((line) => JSON.parse(line) as Result)
  const problems: string[] = []
  let current = ''
  let failedTests: string[] = []
  for (const result of results) {
    if (result.type === 'started') current = result.title
    if (result.type === 'passed') counts.passed += 1
    if (result.type === 'notRun') notRun.add(result.title)
    if (result.type === 'failed') failedTests.push(result.title)
    if (result.type === 'ended' && shared) {
      if (result.failed && failedTests.length === 0) failedTests.push('could not be loaded')
      problems.push(...failedTests.map((title) => `${result.title}: ${title}`))
      failedTests = []
      times.push({ name: result.title, ms: result.ms })
    }
  }
  problems.push(...failedTests.map((title) => `${name}: ${title}`))
  const hasTests = results.some(({ type }) => type !== 'notRun')
  const last = current === '' ? '' : `, the last file was ${current}`
  if (isLate) problems.push(`${name} was not over after ${JOB_TIMEOUT_MS / 60_000} minutes${last}`)
  else if (results.at(-1)?.type !== (hasTests ? 'complete' : 'notRun'))
    problems.push(`${name} ended before its tests did (${end})${last}`)
  else if (end !== 0 && problems.length === 0) problems.push(`${name} ended with ${end}`)
  times.push({ name, ms, cpu: Number(readLines(paths.times)[0] ?? 0) })
  counts.failed += problems.length
  failures.push(...problems)
  print({ name, ms, output, shared, problems, results })
}

function print(job: {
  readonly name: string
  readonly ms: number
  readonly output: string
  readonly shared: boolean
  readonly problems: readonly string[]
  readonly results: readonly Result[]
}): void {
  const number = job.results.filter(({ type }) => type === 'passed').length
  const seconds = (job.ms / 1_000).toFixed(1)
  const isLong = job.shared && job.problems.length > 0 && wanted.length === 0
  const details = isLong ? job.output.slice(Math.max(0, job.output.lastIndexOf('✖ failing tests'))) : job.output
  if (wanted.length > 0 || job.problems.length > 0) console.log(details.trimEnd())
  console.log(`${job.problems.length === 0 ? '✔' : '✖'} ${job.name}: ${number} passed in ${seconds} s`)
}

function environment(paths: { readonly report: string; readonly times: string }): NodeJS.ProcessEnv {
  return {
    // Test processes, and those that they start, share what Node has compiled.
    NODE_COMPILE_CACHE: join(import.meta.dirname, '../.cache/compiled'),
    ...(process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}),
    ...process.env,
    HOOKLOOP_TEST_SEED: String(seed),
    HOOKLOOP_TEST_REPORT: paths.report,
    ...(values.times ? { HOOKLOOP_TEST_TIMES: paths.times } : {}),
    ...(values.soak ? { HOOKLOOP_TEST_KILLS: '200', HOOKLOOP_TEST_RUNS: '1000' } : {}),
  }
}

/** As many groups as there are processors, of about the same size. */
function inGroups(shared: readonly string[]): readonly Job[] {
  const groups = Array.from({ length: Math.min(CPUS, shared.length) }, () => ({ files: [] as string[], size: 0 }))
  for (const file of shared) {
    const smallest = groups.toSorted((a, b) => a.size - b.size)[0]!
    smallest.files.push(file)
    smallest.size += statSync(file).size
  }
  return groups.map(({ files: inJob }) => ({
    name: inJob.length === 1 ? inJob[0]! : `${inJob.length} files in one process`,
    files: inJob,
  }))
}

function printTimes(): void {
  console.log('\n    wall      CPU  in seconds')
  for (const { name, ms, cpu } of times.toSorted((a, b) => b.ms - a.ms).slice(0, 60)) {
    const columns = [ms / 1_000, cpu].map((number) => (number?.toFixed(1) ?? '').padStart(8))
    console.log(`${columns.join(' ')}  ${name}`)
  }
  const total = times.reduce((sum, { cpu = 0 }) => sum + cpu, 0)
  console.log(`         ${total.toFixed(1).padStart(8)}  in total`)
}

function readLines(file: string): readonly string[] {
  try {
    return readFileSync(file, 'utf8').trim().split('\n')
  } catch {
    return []
  }
}

function stop(message: string): never {
  console.error(message)
  process.exit(1)
}
