// The tools of an MCP server are tools like any other: guards judge their calls, an approver is asked,
// and a server that crashes is a failed call.
import { join } from 'node:path'
import { approval, createAgent, guard } from 'hookloop'
import { mcp } from 'hookloop/mcp'
import { scriptedModel } from 'hookloop/testing'

await using servers = await mcp({
  servers: {
    shelf: {
      command: process.execPath,
      args: [join(import.meta.dirname, 'mcp-server.ts')],
      ask: ['borrow'], // the others run at once
    },
  },
})

const agent = createAgent({
  model: scriptedModel([
    {
      toolCalls: [
        { name: 'mcp__shelf__find', args: { title: 'Dune' } },
        { name: 'mcp__shelf__borrow', args: { title: 'Dune' } },
        { name: 'mcp__shelf__burn', args: { title: 'Dune' } },
        { name: 'mcp__shelf__crash' },
        { name: 'mcp__shelf__find', args: { title: 'Dune' } }, // the server is started again, and has forgotten
        { name: 'mcp_read_resource', args: { server: 'shelf', uri: 'shelf://rules' } },
      ],
    },
    'Done.',
  ]),
  use: [
    servers,
    guard('beforeToolUse', (ctx) => ctx.block('Books are not burned.'), { name: 'no-fire', tool: 'mcp__*__burn' }),
    approval(({ toolCall }) => {
      console.log(`asked about ${toolCall.name} ${JSON.stringify(toolCall.args)}`)
      return 'allow'
    }),
  ],
})

console.log(servers.notes?.join('\n'))
const run = await agent.run('Get me Dune.')
const step = run.state.execution!.steps.at(0)!
for (const [i, { name }] of step.toolCalls.entries()) {
  const { status, output } = step.toolExecutions[i]!
  console.log(`${name.padEnd(19)} ${status.padEnd(8)} ${output as string}`)
}
console.log('in code:', await servers.readResource('shelf://rules'))
