import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { StoreKind } from './stores.fixture.ts'

// Runs many scenarios, in threads: promises are many times slower where the test runner tracks each of them.

export type Choice = {
  /** Every how many-th scenario is run, every agent without a fault, and at least one of each kind and change. 1: all. */
  readonly stride: number
  /** Only every how many-th agent of those with more than one part. Default: all. */
  readonly everyAgent?: number
  /** Default: all. */
  readonly kinds?: readonly string[] | undefined
  /** The names of agents. Default: all. */
  readonly agents?: readonly string[] | undefined
  /** Default: in memory. */
  readonly store?: StoreKind | undefined
  /** Whether it ends with the first violation. */
  readonly isUntilFirst?: boolean
  /** Only scenarios whose name contains this text. Default: all. */
  readonly only?: string
}

/** A violation: how often it was found, and the first scenarios in which it was. */
export type Found = { count: number; readonly examples: string[] }

export type Explored = {
  readonly counts: { readonly [kind: string]: number }
  /** How many of them are the same as another one after a crash. */
  readonly known: number
  readonly violations: { readonly [violation: string]: Found }
  readonly agents: readonly string[]
  readonly variants: readonly string[]
  readonly seconds: number
}

export type Job = Choice & { readonly shard: number; readonly shards: number }

/** Most of what a scenario makes is gone after it: collecting it seldom is cheap. */
const YOUNG_MB = 64

/** Runs the chosen scenarios in as many threads as there are processors. */
export async function explore(choice: Choice, shards = availableParallelism()): Promise<Explored> {
  const threads = Array.from({ length: shards }, async (_, shard) => {
    const thread = new Worker(new URL('thread.fixture.ts', import.meta.url), {
      workerData: { ...choice, shard, shards } satisfies Job,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    })
    const [explored] = (await once(thread, 'message')) as [Explored]
    return explored
  })
  return merged(await Promise.all(threads))
}

const EXAMPLES = 3

export function found(known: Record<string, Found>, violation: string, { count, examples }: Found): void {
  const entry = (known[violation] ??= { count: 0, examples: [] })
  entry.count += count
  entry.examples.push(...examples.slice(0, EXAMPLES - entry.examples.length))
}

function merged(parts: readonly Explored[]): Explored {
  const counts: Record<string, number> = {}
  const violations: Record<string, Found> = {}
  for (const part of parts) {
    for (const [kind, count] of Object.entries(part.counts)) counts[kind] = (counts[kind] ?? 0) + count
    for (const [violation, each] of Object.entries(part.violations)) found(violations, violation, each)
  }
  return {
    counts,
    known: parts.reduce((sum, { known }) => sum + known, 0),
    violations,
    agents: [...new Set(parts.flatMap(({ agents }) => agents))],
    variants: [...new Set(parts.flatMap(({ variants }) => variants))],
    seconds: Math.max(...parts.map(({ seconds }) => seconds)),
  }
}

/** The counts by kind, and the violations, most frequent first. */
export function report({ counts, known, violations, seconds, agents }: Explored): string {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const rows = Object.entries(counts).map(([kind, count]) => `${String(count).padStart(9)}  ${kind}`)
  const sum = `${String(total).padStart(9)}  in all, of ${agents.length} agents, in ${Math.round(seconds)} s`
  const same = `${String(known).padStart(9)}  of them are the same as others after a crash`
  return [...rows, sum, same, ...wrongs(violations)].join('\n')
}

/** The violations with scenarios to run, most frequent first. */
export function wrongs(violations: Explored['violations']): readonly string[] {
  return Object.entries(violations)
    .toSorted(([, a], [, b]) => b.count - a.count)
    .map(([violation, { count, examples }]) => [`${count} × ${violation}`, ...examples].join('\n    '))
}
