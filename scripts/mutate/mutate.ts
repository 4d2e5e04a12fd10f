// Changes the code that decides, one change at a time, and lists the changes that no test notices. Works on a copy of the
// repository. First it runs each test file once, to know how long it takes and what it reaches. Then each change runs only
// the tests that reach it, cheap ones first, until one fails. What load can cause does not count: a failure of a test that
// starts processes must repeat, and so must a timeout, while nothing else runs here, and right after the same tests passed
// without the change. Not part of `npm test`.
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { copyRepository } from './copy-repository.ts'
import { decidingFiles } from './deciding-files.ts'
import { equivalent } from './equivalent.ts'
import { measure, reaches, TEST_MS, testsThatLoad, type Measured } from './measure-tests.ts'
import { mutantsOf, type Mutant } from './mutants.ts'
import { firstFailure, type Failure } from './run-tests.ts'
import { ruleMutants } from './rules.ts'
import { noticed, type Noticed } from './run-rules.ts'
import { stagesOf, timeoutFor, type Stage } from './stages.ts'

type Picked = Mutant & { readonly file: string }
type Judged = Pick<Picked, 'file' | 'line' | 'change'> & {
  readonly killed: boolean
  /** The test that failed, or why it survived. */
  readonly why: string
}

const USAGE = `Usage: npm run mutate [-- options]

Makes single changes in the files that decide, and lists those that no test notices.

  --file <part>     only files with this text in their path, also others than the usual ones; can be repeated.
                    <part>:<line> tries only the changes of that line
  --count <n>       how many changes to try in each file. Default: 10
  --seed <n>        which changes are picked. Default: 1
  --jobs <n>        how many at the same time. Default: 1
  --minutes <n>     after how long the tests of one change end. Default: 5
  --rules           turns off each rule of the core instead, and lists those that the small world does not notice
  --list            lists the changes without trying them
  --json            prints one object: { tried, killed, percent, mutants }
  --help            prints this text`

const root = join(import.meta.dirname, '../..')
process.chdir(root)
const flags = readFlags()
if (flags.help) {
  console.log(USAGE)
  process.exit(0)
}
const [count, seed, jobs, minutes] = (['count', 'seed', 'jobs', 'minutes'] as const).map((name) => {
  const value = Number(flags[name])
  return Number.isFinite(value) && value >= (name === 'seed' ? 0 : 1) ? value : stop(`--${name} is a number.`)
}) as [number, number, number, number]

if (flags.rules) await mutateRules()
const chosen = chosenFiles(flags.file)
const files = chosen.map(({ file }) => file)
const picked = chosen.flatMap(({ file, lines }) => {
  const all = mutantsOf(readFileSync(file, 'utf8')).map((mutant): Picked => ({ ...mutant, file }))
  const possible = all.filter((mutant) => !isEquivalent(mutant) && (lines.length === 0 || lines.includes(mutant.line)))
  return shuffled(possible).slice(0, count)
})
say(`${files.length} files, ${picked.length} changes picked with seed ${seed}`)

if (flags.list) {
  const list = picked.map(({ file, line, change }) => `${file}:${line}  ${change}\n`).join('')
  await new Promise((resolve) => process.stdout.write(list, resolve)) // a pipe takes a long list in parts
  process.exit(0)
}

const folder = mkdtempSync(join(tmpdir(), 'hookloop-mutate-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
const copies = Array.from({ length: jobs }, (_, i) => copyRepository(root, join(folder, `${i}`)))
process.chdir(copies[0]!) // files may be edited in the repository from now on

const measured: Measured[] = []
const measuredFiles = [...new Set([...decidingFiles(), ...files])].toSorted()
await shareOut(testsThatLoad(files), async (test, copy) => {
  const result = await measure(copy, test, { files: measuredFiles, cache: join(root, '.cache/mutate') })
  if (result.failed === undefined) measured.push(result)
  else say(`not used, because "${result.failed}" fails without a change: ${test}`)
})
say(`${measured.length} test files measured`)

const judged: Judged[] = []
const unsure: Picked[] = []
await shareOut(picked, async (mutant, copy) => {
  const result = await judge(copy, mutant, jobs === 1)
  if (result === undefined) unsure.push(mutant)
  else note(result)
})
for (const mutant of unsure) note((await judge(copies[0]!, mutant, true))!)
if (flags.json) console.log(JSON.stringify({ ...figures(judged), mutants: judged }))
else printResult()

/** Turns off the rules of the core, one at a time. */
async function mutateRules(): Promise<never> {
  if (flags.list) {
    const list = ruleMutants.map(({ rule, name, file }) => `${rule}  ${name}  (${file})\n`).join('')
    await new Promise((resolve) => process.stdout.write(list, resolve))
    process.exit(0)
  }
  const temporary = mkdtempSync(join(tmpdir(), 'hookloop-rules-'))
  process.once('exit', () => rmSync(temporary, { recursive: true, force: true, maxRetries: 5 }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  const roots = Array.from({ length: jobs }, (_, i) => copyRepository(root, join(temporary, `${i}`)))
  const found: Noticed[] = []
  await shareOut(
    ruleMutants,
    async (mutant, copy) => {
      const each = await noticed(copy, mutant)
      found.push(each)
      say(`${each.isNoticed ? 'noticed' : 'NOT NOTICED'}  rule ${each.rule}: ${each.name}: ${each.why}`)
    },
    roots,
  )
  const missed = found.filter(({ isNoticed }) => !isNoticed)
  if (flags.json)
    console.log(JSON.stringify({ tried: found.length, noticed: found.length - missed.length, rules: found }))
  else console.log(`${found.length - missed.length} of ${found.length} noticed`)
  process.exit(missed.length === 0 ? 0 : 1)
}

/** Each copy takes the next one as soon as it has finished. */
async function shareOut<T>(
  values: readonly T[],
  act: (value: T, copy: string) => Promise<void>,
  among: readonly string[] = copies,
): Promise<void> {
  const queue = values.values()
  const work = async (copy: string): Promise<void> => {
    for (const value of queue) await act(value, copy)
  }
  await Promise.all(among.map(work))
}

/** Undefined if the change must be judged again when nothing else runs. */
async function judge(copy: string, mutant: Picked, isAlone: boolean): Promise<Judged | undefined> {
  const { file, line, change, start } = mutant
  const tests = measured.filter((test) => reaches(test, file, start))
  const survived = (why: string): Judged => ({ file, line, change, killed: false, why })
  if (tests.length === 0) return survived('no test reaches it')
  const ends = performance.now() + minutes * 60_000
  for (const stage of stagesOf(file, tests)) {
    const left = ends - performance.now()
    if (left <= 0) return survived('not all tests were run')
    let failed = await failureWith(copy, mutant, stage, Math.min(left, stage.timeoutMs))
    if (failed?.timedOut === true) {
      if (!isAlone) return undefined
      const before = performance.now()
      const without = await firstFailure(copy, stage.tests, { timeoutMs: TEST_MS })
      if (without !== undefined) return survived(`fails without the change as well: ${without.title}`)
      failed = await failureWith(copy, mutant, stage, timeoutFor(performance.now() - before))
    } else if (failed !== undefined && stage.starts) {
      failed = await failureWith(copy, mutant, stage, stage.timeoutMs)
    }
    if (failed !== undefined) return { file, line, change, killed: true, why: failed.title }
  }
  return survived(`${tests.length} test files passed`)
}

async function failureWith(
  copy: string,
  { file, start, end, text }: Picked,
  { tests }: Stage,
  timeoutMs: number,
): Promise<Failure | undefined> {
  const path = join(copy, file)
  const source = readFileSync(path, 'utf8')
  writeFileSync(path, source.slice(0, start) + text + source.slice(end))
  const failed = await firstFailure(copy, tests, { timeoutMs })
  writeFileSync(path, source)
  return failed
}

function note(result: Judged): void {
  judged.push(result)
  const { file, line, change, killed, why } = result
  say(
    `${judged.length}/${picked.length} ${file}:${line}  ${change}  ${killed ? `killed by "${why}"` : `SURVIVED, ${why}`}`,
  )
}

function printResult(): void {
  for (const { file, line, change, why } of judged.filter(({ killed }) => !killed))
    console.log(`${file}:${line}  ${change}  (${why})`)
  console.log('')
  for (const file of files) {
    const { tried, killed } = figures(judged.filter((each) => each.file === file))
    console.log(`${String(killed).padStart(4)} of ${String(tried).padStart(3)}  ${file}`)
  }
  const { tried, killed, percent } = figures(judged)
  console.log(`\n${killed} of ${tried} changes made a test fail (${percent} %)`)
}

function figures(some: readonly Judged[]): { tried: number; killed: number; percent: number } {
  const killed = some.filter((each) => each.killed).length
  return { tried: some.length, killed, percent: Math.round((killed / Math.max(1, some.length)) * 1000) / 10 }
}

type Chosen = { readonly file: string; readonly lines: readonly number[] }

function chosenFiles(parts: readonly string[] | undefined): readonly Chosen[] {
  if (parts === undefined) return decidingFiles().map((file) => ({ file, lines: [] }))
  const wanted = parts.map((part) => part.split(':') as [string, string?])
  const sources = globSync('hookloop/src/**/*.ts').filter((file) => !/\.(test|fixture|types|d)\.ts$/.test(file))
  const found = sources.toSorted().flatMap((file): readonly Chosen[] => {
    const fitting = wanted.filter(([part]) => file.includes(part))
    const lines = fitting.flatMap(([, line]) => (line === undefined ? [] : [Number(line)]))
    return fitting.length === 0 ? [] : [{ file, lines }]
  })
  return found.length > 0 ? found : stop(`No source file has ${parts.join(' or ')} in its path.`)
}

function isEquivalent({ file, code, change }: Picked): boolean {
  return equivalent.some((each) => file.endsWith(`/${each.file}`) && each.code === code && each.change === change)
}

/** In an order that depends only on the seed. */
function shuffled<T>(values: readonly T[]): readonly T[] {
  let state = seed + 1
  const random = (): number => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return state / 2 ** 31
  }
  return values
    .map((value) => ({ value, key: random() }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ value }) => value)
}

function readFlags() {
  try {
    return parseArgs({
      options: {
        file: { type: 'string', multiple: true },
        count: { type: 'string', default: '10' },
        seed: { type: 'string', default: '1' },
        jobs: { type: 'string', default: '1' },
        minutes: { type: 'string', default: '5' },
        rules: { type: 'boolean', default: false },
        list: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values
  } catch (error) {
    return stop(`${(error as Error).message} See npm run mutate -- --help.`)
  }
}

function say(text: string): void {
  process.stderr.write(`${text}\n`)
}

function stop(message: string): never {
  say(message)
  process.exit(2)
}
