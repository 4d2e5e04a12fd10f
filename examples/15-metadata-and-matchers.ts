// Metadata describes a run. Only the application and hooks can write it, so a guard can rely on it.
// Matchers say when a hook fires. They are predicates on the context and can be combined.
import { all, any, createAgent, guard, hasMetadata, hook, not, stepType, tool, toolName } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'

const named = (name: string) =>
  tool({ name, description: name, input: { type: 'object' }, execute: () => `${name}: done` })

const agent = createAgent({
  // A function of the request, so that any number of runs can share the model.
  model: scriptedModel(({ messages }) =>
    messages.length > 1 ? 'Finished.' : { toolCalls: ['db.read', 'db.drop', 'mail.send'].map((name) => ({ name })) },
  ),
  use: [
    named('db.read'),
    named('db.drop'),
    named('mail.send'),

    guard('beforeToolUse', (ctx) => ctx.block('Only admins drop tables.'), {
      name: 'admins-only',
      when: all(toolName('db.d*'), not(hasMetadata('role', 'admin'))),
    }),

    guard('beforeToolUse', (ctx) => ctx.block('A dry run changes nothing.'), {
      name: 'dry-run',
      when: all(hasMetadata('dryRun', true), any(toolName(/^mail\./), toolName('db.drop'))),
    }),

    hook('afterStep', (ctx) => ctx.withState((state) => state.withMetadata('steps', state.stepCount)), {
      name: 'count-tool-steps',
      when: stepType('toolExecution'),
    }),
  ],
})

for (const metadata of [{ role: 'guest' }, { role: 'admin' }, { role: 'admin', dryRun: true }]) {
  const run = await agent.run('Clean up and tell everybody.', { metadata })
  console.log(JSON.stringify(run.state.metadata))
  for (const { status, output, by } of run.state.execution!.steps.at(0)!.toolExecutions) {
    console.log(`  ${status.padEnd(8)}`, output, by === undefined ? '' : `(${by})`)
  }
}
