// Five hundred tools, of which the model receives one: it searches, loads what it needs, and calls it in the next step.
// Guards also apply to tools that are not loaded yet.
import { createAgent, explanation, guard, tool, type JsonObject } from 'hookloop'
import { toolRegistry } from 'hookloop/tool-registry'
import { scriptedModel } from 'hookloop/testing'

const services = ['github', 'gitlab', 'jira', 'linear', 'slack', 'mail', 'calendar', 'drive', 'stripe', 'shop']
const things = ['issue', 'message', 'event', 'file', 'invoice', 'user', 'comment', 'payment', 'label', 'order']
const verbs = ['create', 'list', 'update', 'delete', 'archive']

const everything = services.flatMap((service) =>
  things.flatMap((thing) =>
    verbs.map((verb) =>
      tool({
        name: `${service}_${verb}_${thing}`,
        description: `${verb}s an ${thing} on ${service}.`,
        input: { type: 'object', properties: { title: { type: 'string' } }, additionalProperties: false },
        execute: ({ title }) => `${service}: ${verb}d ${JSON.stringify(title)}`,
      }),
    ),
  ),
)

const tools = (action: string, args: JsonObject) => ({ name: 'tools', args: { action, ...args } })
const model = scriptedModel([
  { toolCalls: [{ name: 'github_create_issue', args: { title: 'The build is broken' } }] }, // it was not offered that
  { toolCalls: [tools('search', { query: 'creating issues on github', limit: 3 })] },
  { toolCalls: [tools('load', { names: ['github_create_issue', 'github_delete_issue'] })] },
  {
    toolCalls: [
      { name: 'github_create_issue', args: { title: 'The build is broken' } },
      { name: 'github_delete_issue', args: { title: 'An old one' } },
    ],
  },
  'I have opened the issue.',
])

const agent = createAgent({
  model,
  use: [
    toolRegistry({ tools: everything, maxLoadedTools: 5 }),
    guard('beforeToolUse', (ctx) => ctx.block('Nothing is deleted.'), { name: 'no-delete', tool: '*_delete_*' }),
  ],
})

const run = await agent.run('Open an issue about the broken build.')
for (const [i, { toolCalls, toolExecutions }] of [...(run.state.execution?.steps ?? [])].entries()) {
  const { tools: sent } = model.requests[i]!
  console.log(
    `\nstep ${i + 1}: ${sent.length} of ${everything.length + 1} tools, ${JSON.stringify(sent).length} characters`,
  )
  for (const [n, { status, output }] of toolExecutions.entries()) {
    console.log(`  ${toolCalls[n]!.name} ${status}:`, output)
  }
}
console.log(
  `\n${run.text} (blocked: ${explanation(run)
    .blocked.map(({ tool: name }) => name)
    .join(', ')})`,
)
