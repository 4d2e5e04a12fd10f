import { guard, hook, observe, type Hook } from 'hookloop'
import { round, sideBySide, type Figures, type Measurement } from '../measurement.ts'
import { agentFor } from '../work.ts'

// What one more hook costs that does nothing: the same run with and without the hooks, in turn. An async function that
// resolves at once is what most users write; one that resolves after a tick has really waited for something.

const STEPS = 200
const COUNTS = [1, 10, 100]

type Kind = 'transform' | 'guard' | 'observer'
type Answer = 'sync' | 'atOnce' | 'afterTick'

export const measurement: Measurement = {
  about: '1 to 100 more hooks that do nothing, synchronous and asynchronous',
  rows: {
    nsPerHook: { label: 'ns per further hook', goal: 60 },
    nsPerAsyncHook: { label: 'ns per further async hook that resolves at once', goal: 350 },
    nsPerAsyncGuard: { label: 'ns per further async guard that resolves at once', goal: 350 },
    nsPerAsyncObserver: { label: 'ns per further async observer that resolves at once' },
  },
  async measure() {
    const ns: Record<Kind, Record<Answer, Record<number, number>>> = {
      transform: await byAnswer('transform'),
      guard: await byAnswer('guard'),
      observer: await byAnswer('observer'),
    }
    return {
      nsPerHook: ns.transform.sync[10]!,
      nsPerAsyncHook: ns.transform.atOnce[10]!,
      nsPerAsyncGuard: ns.guard.atOnce[10]!,
      nsPerAsyncObserver: ns.observer.atOnce[10]!,
      nsByHook: ns satisfies Figures,
    }
  },
}

async function byAnswer(kind: Kind): Promise<Record<Answer, Record<number, number>>> {
  return {
    sync: await byCount(kind, 'sync'),
    atOnce: await byCount(kind, 'atOnce'),
    afterTick: await byCount(kind, 'afterTick'),
  }
}

/** By how many hooks there are. */
async function byCount(kind: Kind, answer: Answer): Promise<Record<number, number>> {
  const agents = [0, ...COUNTS].map((count) =>
    agentFor(
      STEPS,
      Array.from({ length: count }, (_, i) => hookOf(kind, answer, `noop-${i}`)),
    ),
  )
  const sides = agents.map((agent) => () => agent.run('go'))
  await sideBySide(5, STEPS, sides)
  const [none, ...rest] = (await sideBySide(25, STEPS, sides)).map(({ fast }) => fast)
  return Object.fromEntries(COUNTS.map((count, i) => [count, round(((rest[i]! - none!) * 1000) / count)]))
}

function hookOf(kind: Kind, answer: Answer, name: string): Hook {
  const wait = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve))
  if (kind === 'observer') {
    if (answer === 'sync') return observe('beforeStep', () => undefined, { name })
    return observe('beforeStep', answer === 'atOnce' ? async () => undefined : wait, { name })
  }
  const handler = {
    sync: <C>(ctx: C) => ctx,
    atOnce: async <C>(ctx: C) => ctx,
    afterTick: async <C>(ctx: C) => (await wait(), ctx),
  }[answer]
  return kind === 'guard' ? guard('beforeStep', handler, { name }) : hook('beforeStep', handler, { name })
}
