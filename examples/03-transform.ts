// Hooks that change values: one rewrites the arguments of a call, one removes secrets from its result.
// Guards judge the changed values, and the ledger records each change (of outputs only the new value).
import { createAgent, explain, hook, tool } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
import * as z from 'zod'

const query = tool({
  name: 'query',
  description: 'Reads rows of a table.',
  input: z.object({ table: z.string(), limit: z.number().default(1_000_000) }),
  execute: ({ table, limit }) => `${limit} rows of ${table}, read with password=hunter2`,
})

const agent = createAgent({
  model: scriptedModel([{ toolCalls: [{ name: 'query', args: { table: 'orders' } }] }, 'Here are the orders.']),
  use: [
    query,
    hook(
      'beforeToolUse',
      (ctx) => ctx.withArgs({ ...ctx.toolCall.args, limit: Math.min(ctx.toolCall.args.limit ?? 100, 100) }),
      { name: 'small-pages', tool: query },
    ),
    hook(
      'afterToolUse',
      (ctx) => {
        const { output } = ctx.toolExecution
        return typeof output === 'string' ? ctx.withOutput(output.replace(/password=\S+/, 'password=[redacted]')) : ctx
      },
      { name: 'redact', tool: query, priority: -100 },
    ),
  ],
})

const run = await agent.run('Show me all orders.')

console.log('the model saw:', run.state.execution?.steps.at(0)?.toolExecutions[0]?.output)
console.log(explain(run))
