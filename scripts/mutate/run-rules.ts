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

const RUN_MS = 600_000

type Violations = { readonly [violation: string]: { readonly examples: readonly string[] } }

/** Turns off a rule in a copy of the repository, and runs the small world there until something is violated. */
export async function noticed(copy: string, mutant: RuleMutant): Promise<Noticed> {
  const { rule, name, file } = mutant
  const path = join(copy, 'hookloop/src', file)
  const source = readFileSync(path, 'utf8')
  writeFileSync(path, withoutRule(source, mutant))
  const why = await violated(copy, mutant).finally(() => writeFileSync(path, source))
  return { rule, name, isNoticed: why !== undefined, why: why ?? 'no violation' }
}

/** The source with a rule turned off. Throws if the text of the rule has changed. */
export function withoutRule(source: string, { rule, name, file, from, to }: RuleMutant): string {
  const parts = source.split(from)
  if (parts.length !== 2)
    throw new Error(`${file} has ${parts.length - 1} times the text of rule ${rule}, ${name}:\n${from}`)
  return parts.join(to)
}

/** The first violation, or how the small world ended without a result. Undefined if there is none. */
async function violated(copy: string, { agents, kinds, stride = 1 }: RuleMutant): Promise<string | undefined> {
  const script = 'hookloop/src/small-world/explore.fixture.ts'
  const chosen = [...agents.flatMap((agent) => ['--agent', agent]), ...kinds.flatMap((kind) => ['--kind', kind])]
  const flags = ['--json', '--first', '--threads', '1']
  const args = ['--conditions=hookloop-source', script, String(stride), ...chosen, ...flags]
  const env = { ...process.env, NODE_COMPILE_CACHE: join(copy, '.cache/compiled') }
  try {
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: copy, timeout: RUN_MS, env })
    const [first] = Object.entries((JSON.parse(stdout) as { readonly violations: Violations }).violations)
    return first && `${first[0]} (${first[1].examples[0]})`
  } catch (thrown) {
    const { killed, stderr = '' } = thrown as { readonly killed?: boolean; readonly stderr?: string }
    if (killed === true) return `no end within ${RUN_MS / 1000} s`
    const error = stderr.split('\n').find((line) => line.includes('Error'))
    return `it ended with: ${error?.trim() ?? 'an error'}`
  }
}
