import { files } from '../../capabilities/files/files.ts'
import { guards } from '../../capabilities/guards.ts'
import { retry } from '../../capabilities/retry.ts'
import { JUDGE, verdict, type AskModel } from '../../hook-files/claude/run/ask-model.ts'
import { createAgent } from '../../create-agent.ts'

const MAX_STEPS = 50

/** Calls a model by name, for handlers that are tested without a run whose model they could call. */
export function askNamedModel(model: string, dir: string): AskModel {
  const how = { model, instructions: JUDGE, output: verdict } as const
  const asked = createAgent({ ...how, use: [retry()] })
  const inspector = createAgent({
    ...how,
    use: [retry(), files({ root: dir, write: false }), guards({ maxSteps: MAX_STEPS })],
  })
  return async (prompt, { isAgent, signal }) => {
    const run = await (isAgent ? inspector : asked).run(prompt, { signal })
    if (run.status === 'completed') return run.output
    throw new Error(run.status === 'suspended' ? 'the model call was suspended for approval' : run.final.message)
  }
}
