import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { RuleMutant } from './rule-mutant.ts'

/** Whether the small world notices that a rule is turned off. */
export type Noticed = Pick<RuleMutant, 'rule' | 'name'> & {
  readonly isNoticed: boolean
  /** The violation with a scenario, or why there is none. */
  readonly why: string
}

const RUN_MS = 300_000

type Found = { readonly [violation: string]: { readonly examples: readonly string[] } }

const known = new Map<string, Found>()

/** Turns off a rule in a copy of the repository, and runs the small world there. */
export async function noticed(copy: string, mutant: RuleMutant): Promise<Noticed> {
  const { rule, name, file, from, to } = mutant
  const path = join(copy, 'hookloop/src', file)
  const source = readFileSync(path, 'utf8')
  const parts = source.split(from)
  const result = (isNoticed: boolean, why: string): Noticed => ({ rule, name, isNoticed, why })
  if (parts.length !== 2) return result(false, `its text is ${parts.length - 1} times in ${file}`)
  writeFileSync(path, parts.join(to))
  const found = await run(copy, mutant, ['--first']).finally(() => writeFileSync(path, source))
  if (typeof found === 'string') return result(true, found)
  if (Object.keys(found).length === 0) return result(false, 'no violation')
  const before = await withoutChange(copy, mutant)
  const fresh = (some: Found): [string, Found[string]] | undefined =>
    Object.entries(some).find(([violation]) => !Object.hasOwn(before, violation))
  let first = fresh(found)
  if (first === undefined) {
    writeFileSync(path, parts.join(to))
    const all = await run(copy, mutant).finally(() => writeFileSync(path, source))
    if (typeof all === 'string') return result(true, all)
    first = fresh(all)
  }
  if (first === undefined) return result(false, 'only violations that are found without the change as well')
  return result(true, `${first[0]} (${first[1].examples[0]})`)
}

async function withoutChange(copy: string, mutant: RuleMutant): Promise<Found> {
  const name = argumentsOf(mutant).join(' ')
  let found = known.get(name)
  if (found === undefined) {
    const all = await run(copy, mutant)
    if (typeof all === 'string') throw new Error(`The small world does not end without a change: ${all}`)
    known.set(name, (found = all))
  }
  return found
}

function argumentsOf({ agents, kinds, stride = 1 }: RuleMutant): readonly string[] {
  const chosen = [...agents.flatMap((agent) => ['--agent', agent]), ...kinds.flatMap((kind) => ['--kind', kind])]
  return [String(stride), ...chosen, '--json']
}

/** The violations, or how it ended if it has not printed them. */
async function run(copy: string, mutant: RuleMutant, more: readonly string[] = []): Promise<Found | string> {
  const script = 'hookloop/src/small-world/explore.fixture.ts'
  const args = ['--conditions=hookloop-source', script, ...argumentsOf(mutant), ...more]
  try {
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: copy, timeout: RUN_MS, maxBuffer: 1e8 })
    return (JSON.parse(stdout) as { readonly violations: Found }).violations
  } catch (thrown) {
    const { killed, stderr = '' } = thrown as { readonly killed?: boolean; readonly stderr?: string }
    if (killed === true) return `no end within ${RUN_MS / 1000} s`
    return `it ended with: ${
      stderr
        .trim()
        .split('\n')
        .find((line) => /Error/.test(line)) ?? 'an error'
    }`
  }
}
