// Measures what Hookloop costs, next to a hand-written loop. See site/reference/performance.md.
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { compare, comparisonTable } from './compare.ts'
import { measureIn } from './measure-in.ts'
import type { Figures } from './measurement.ts'
import { measurements } from './registry.ts'
import { linesOf, markdownTable, merged, table } from './report.ts'

const root = join(import.meta.dirname, '..')
const names = Object.keys(measurements)
const { values: flags } = readFlags()
if (flags.help) {
  console.log(await help())
  process.exit(0)
}
const wanted = flags.only ?? names
const unknown = wanted.find((name) => !names.includes(name))
if (unknown !== undefined) stop(`There is no measurement "${unknown}". There are: ${names.join(', ')}.`)
const rounds = Number(flags.rounds)
if (!Number.isSafeInteger(rounds) || rounds < 1) stop('--rounds is a whole number of at least 1.')

if (flags.compare !== undefined) {
  const result = await compare({ root, commit: flags.compare, names: wanted, rounds, say })
  console.log(flags.json ? JSON.stringify(result) : comparisonTable(result))
} else {
  const figures: Figures[] = []
  for (const name of wanted) {
    say(`${name}: ${(await measurements[name]!()).measurement.about} …`)
    try {
      figures.push(await measureIn(root, name))
    } catch (error) {
      say(`${name} failed: ${String(error)}`)
      process.exitCode = 1
    }
  }
  const all = merged(figures)
  if (flags.json) console.log(JSON.stringify({ ...all, node: process.version }))
  else console.log((flags.markdown ? markdownTable : table)(await linesOf(all)))
}

function readFlags() {
  try {
    return parseArgs({
      options: {
        help: { type: 'boolean', short: 'h', default: false },
        json: { type: 'boolean', default: false },
        markdown: { type: 'boolean', default: false },
        only: { type: 'string', multiple: true },
        compare: { type: 'string' },
        rounds: { type: 'string', default: '3' },
      },
    })
  } catch (error) {
    return stop(`${(error as Error).message} See npm run bench -- --help.`)
  }
}

async function help(): Promise<string> {
  const list = names.map(async (name) => `  ${name.padEnd(14)}${(await measurements[name]!()).measurement.about}`)
  return `Usage: npm run bench [-- options]

Measures Hookloop next to a hand-written loop; takes some minutes. Tests are never timed. Progress is printed to stderr.

  --json              prints one object with all figures
  --markdown          prints the table for the documentation
  --only <name>       runs one measurement; can be repeated
  --compare <commit>  builds that commit as well, measures both in turn, and prints both and their ratio
  --rounds <n>        how often --compare measures each side; the best round counts. Default: 3
  --help

Measurements:
${(await Promise.all(list)).join('\n')}`
}

function say(text: string): void {
  process.stderr.write(`${text}\n`)
}

function stop(message: string): never {
  say(message)
  process.exit(2)
}
