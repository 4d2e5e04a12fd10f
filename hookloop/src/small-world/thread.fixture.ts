import { parentPort, workerData } from 'node:worker_threads'
import { answerKinds } from './drive.fixture.ts'
import { found, type Explored, type Found, type Job } from './runner.fixture.ts'
import { nameOf, runScenario, scenariosOf } from './scenarios.fixture.ts'
import { specs } from './specs.fixture.ts'
import { closeStores, freeStores, useStores } from './stores.fixture.ts'

// A thread of `runner.fixture.ts`.

parentPort!.postMessage(await exploreShard(workerData as Job), [])

async function exploreShard({
  stride,
  kinds,
  agents: names,
  only = '',
  store = 'memory',
  isUntilFirst,
  shard,
  shards,
}: Job): Promise<Explored> {
  useStores(store)
  const startedAt = performance.now()
  const counts: Record<string, number> = {}
  const violations: Record<string, Found> = {}
  const [agents, variants] = [new Set<string>(), new Set<string>()]
  const seen = new Set<string>() // the first of each kind and variant is always run
  for (const [index, spec] of specs.entries()) {
    if (index % shards !== shard || names?.includes(spec.name) === false) continue
    let number = index // not 0, so that small agents differ in what is chosen of them
    const answers = stride === 1 ? answerKinds : (['allow', index % 4 < 2 ? 'block' : 'edit'] as const)
    for await (const { scenario, reference } of scenariosOf(spec, answers)) {
      const { kind, variant } = scenario
      if (isUntilFirst === true && Object.keys(violations).length > 0) break
      const isFirst = seen.size !== seen.add(`${kind} ${variant}`).size
      const isChosen = number++ % stride === 0 || isFirst || kind === 'whole'
      if (!isChosen || kinds?.includes(kind) === false) continue
      const name = nameOf(scenario)
      if (!name.includes(only)) continue
      counts[kind] = (counts[kind] ?? 0) + 1
      agents.add(spec.name)
      variants.add(variant)
      for (const each of await runScenario(scenario, reference))
        found(violations, `${kind}: ${each}`, { count: 1, examples: [name] })
      await freeStores()
    }
  }
  await closeStores()
  const seconds = (performance.now() - startedAt) / 1_000
  return { counts, violations, agents: [...agents], variants: [...variants], seconds }
}
