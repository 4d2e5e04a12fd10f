// Changes the code that decides, one change at a time, and lists the changes that no test notices. Works on a copy of the
// repository. Not part of `npm test`: each change runs the tests that load its file.
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { linkPackages } from '../checkout.ts'
import { decidingFiles } from './deciding-files.ts'
import { equivalent } from './equivalent.ts'
import { mutantsOf, type Mutant } from './mutants.ts'
import { relatedTests, type Stage } from './related-tests.ts'
import { firstFailure } from './run-tests.ts'

type Picked = Mutant & { readonly file: string }
type Judged = Pick<Picked, 'file' | 'line' | 'change'> & {
  readonly killed: boolean
  /** The test that failed. */
  readonly by?: string
  /** The time was over before all tests had run. */
  readonly incomplete?: boolean
}

/** Tests that take longer than this hang. */
const STAGE_MS = 180_000

const USAGE = `Usage: npm run mutate [-- options]

Makes single changes in the files that decide, and lists those that no test notices.

  --file <part>     only files with this text in their path, also others than the usual ones; can be repeated
  --count <n>       how many changes to try. Default: 40
  --seed <n>        which changes are picked. Default: 1
  --jobs <n>        how many at the same time. Default: 1
  --minutes <n>     after how long the tests of one change end. Default: 5
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

const files = chosenFiles(flags.file)
const all = files.flatMap((file) => mutantsOf(readFileSync(file, 'utf8')).map((mutant) => ({ ...mutant, file })))
const picked = shuffled(all.filter((mutant) => !isEquivalent(mutant))).slice(0, count)
say(`${files.length} files, ${all.length} possible changes, ${picked.length} picked with seed ${seed}`)

if (flags.list) {
  for (const { file, line, change } of picked) console.log(`${file}:${line}  ${change}`)
  process.exit(0)
}

const folder = mkdtempSync(join(tmpdir(), 'hookloop-mutate-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

const judged: Judged[] = []
const queue = picked.values()
const unchanged = copyTo(join(folder, 'unchanged'))
const stages = new Map<string, readonly Stage[]>()
const failing = new Map<string, Promise<string | undefined>>()
await Promise.all(Array.from({ length: Math.min(jobs, picked.length) }, (_, i) => work(copyTo(join(folder, `${i}`)))))

const survivors = judged.filter(({ killed }) => !killed)
const killed = judged.length - survivors.length
const percent = Math.round((killed / Math.max(1, judged.length)) * 1000) / 10
if (flags.json) {
  console.log(JSON.stringify({ tried: judged.length, killed, percent, mutants: judged }))
} else {
  for (const { file, line, change, incomplete } of survivors)
    console.log(`${file}:${line}  ${change}${incomplete === true ? '  (not all tests were run)' : ''}`)
  console.log(`\n${killed} of ${judged.length} changes made a test fail (${percent} %)`)
}

async function work(copy: string): Promise<void> {
  for (const mutant of queue) {
    const path = join(copy, mutant.file)
    const source = readFileSync(path, 'utf8')
    writeFileSync(path, source.slice(0, mutant.start) + mutant.text + source.slice(mutant.end))
    const result = await judge(copy, mutant)
    writeFileSync(path, source)
    judged.push(result)
    const how = result.killed ? `killed by "${result.by}"` : 'SURVIVED'
    say(`${judged.length}/${picked.length} ${mutant.file}:${mutant.line}  ${mutant.change}  ${how}`)
  }
}

async function judge(copy: string, { file, line, change }: Picked): Promise<Judged> {
  const ends = performance.now() + minutes * 60_000
  for (const stage of stagesOf(file)) {
    if (performance.now() > ends) return { file, line, change, killed: false, incomplete: true }
    const by = await firstFailure(copy, stage, STAGE_MS)
    if (by !== undefined && !(await failsUnchanged(stage))) return { file, line, change, killed: true, by }
  }
  return { file, line, change, killed: false }
}

function stagesOf(file: string): readonly Stage[] {
  const known = stages.get(file) ?? relatedTests(file)
  stages.set(file, known)
  return known
}

/** Whether the tests also fail without a change. Each is run once. */
async function failsUnchanged(stage: Stage): Promise<boolean> {
  const key = stage.join(' ')
  if (!failing.has(key)) failing.set(key, firstFailure(unchanged, stage, STAGE_MS))
  const by = await failing.get(key)
  if (by !== undefined) say(`not counted, because "${by}" fails without a change: ${key}`)
  return by !== undefined
}

function copyTo(copy: string): string {
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 1e8 } as const
  const names = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], options)
  for (const name of names.trim().split('\n')) {
    mkdirSync(join(copy, dirname(name)), { recursive: true })
    cpSync(join(root, name), join(copy, name), { force: true, verbatimSymlinks: true, errorOnExist: false })
  }
  linkPackages(copy, root)
  return copy
}

function chosenFiles(parts: readonly string[] | undefined): readonly string[] {
  if (parts === undefined) return decidingFiles()
  const sources = globSync('hookloop/src/**/*.ts').filter((file) => !/\.(test|fixture|types|d)\.ts$/.test(file))
  const chosen = sources.filter((file) => parts.some((part) => file.includes(part))).toSorted()
  return chosen.length > 0 ? chosen : stop(`No source file has ${parts.join(' or ')} in its path.`)
}

function isEquivalent({ file, change }: Picked): boolean {
  return equivalent.some((each) => each.file === file && each.change === change)
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
        count: { type: 'string', default: '40' },
        seed: { type: 'string', default: '1' },
        jobs: { type: 'string', default: '1' },
        minutes: { type: 'string', default: '5' },
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
