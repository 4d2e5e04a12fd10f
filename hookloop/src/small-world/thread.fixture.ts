import { parentPort, workerData } from 'node:worker_threads'
import { answerKinds } from './drive.fixture.ts'
import { found, type Explored, type Found, type Job } from './runner.fixture.ts'
import { nameOf, partsIn, runScenario, scenariosOf } from './scenarios.fixture.ts'
import { specs } from './specs.fixture.ts'
import { closeStores, freeStores, useStores } from './stores.fixture.ts'

// A thread of `runner.fixture.ts`.

parentPort!.postMessage(await exploreShard(workerData as Job), [])

async function exploreShard({
  stride,
  everyAgent = 1,
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
  let known = 0
  const violations: Record<string, Found> = {}
  const [agents, variants] = [new Set<string>(), new Set<string>()]
  const seen = new Set<string>() // the first of each kind and variant is always run
  for (const [index, spec] of specs.entries()) {
    if (index % shards !== shard || names?.includes(spec.name) === false) continue
    if (partsIn(spec) > 1 && index % everyAgent !== 0) continue
    let number = index // not 0, so that small agents differ in what is chosen of them
    const answers = stride === 1 ? answerKinds : (['allow', index % 4 < 2 ? 'block' : 'edit'] as const)
    for await (const { scenario, reference } of scenariosOf(spec, answers, store)) {
      const { kind, variant } = scenario
      if (isUntilFirst === true && Object.keys(violations).length > 0) break
      if (kinds?.includes(kind) === false) continue
      const isFirst = seen.size !== seen.add(`${kind} ${variant}`).size
      const isChosen = number++ % stride === 0 || isFirst || kind === 'whole'
      if (!isChosen) continue
      const name = nameOf(scenario)
      if (!name.includes(only)) continue
      counts[kind] = (counts[kind] ?? 0) + 1
      agents.add(spec.name)
      variants.add(variant)
      const outcome = await runScenario(scenario, reference)
      if (outcome.isKnown) known++
      for (const each of outcome.violations) found(violations, `${kind}: ${each}`, { count: 1, examples: [name] })
      await freeStores()
    }
  }
  await closeStores()
  const seconds = (performance.now() - startedAt) / 1_000
  return { counts, known, violations, agents: [...agents], variants: [...variants], seconds }
}
