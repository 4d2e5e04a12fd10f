// A separate process that calls tools, for tests that kill or measure it. Arguments: the root, the options and the calls as
// JSON. With "loop" the calls are repeated forever. Each result is written as one line of JSON.
import { AgentState } from '../../core/state/agent-state.ts'
import type { ToolRun } from '../../core/agent/tool.ts'
import type { JsonObject } from '../../values/json.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { messageOf } from '../../errors.ts'
import { files } from './files.ts'
import type { FilesOptions } from './options.ts'

const [root = '', options = '{}', given = '[]', loop] = process.argv.slice(2)
const { tools = [] } = files({ root, ...(JSON.parse(options) as FilesOptions) })
const calls = (JSON.parse(given) as [string, JsonObject][]).map(([name, args]) => [name, expanded(args)] as const)
const run: ToolRun = {
  signal: new AbortController().signal,
  idempotencyKey: 'child',
  state: AgentState.create({ agentId: 'child' }),
  progress: () => undefined,
  spend: () => undefined,
  describe: () => createAgent({ model: scriptedModel([]) }).describe(),
}

const before = process.resourceUsage().maxRSS
console.log('ready')
for (let round = 0; round < (loop === 'loop' ? Infinity : 1); round++) {
  for (const [name, args] of calls) console.log(JSON.stringify(await outcome(name, args)))
}
console.log(JSON.stringify({ grownKb: process.resourceUsage().maxRSS - before }))

async function outcome(name: string, args: JsonObject): Promise<object> {
  try {
    const execute = tools.find((tool) => tool.name === name)!.execute as (args: JsonObject, run: ToolRun) => unknown
    const result = await execute(args, run)
    return { ok: JSON.stringify(result).slice(0, 300), chars: JSON.stringify(result).length }
  } catch (error) {
    return { failed: messageOf(error) }
  }
}

/** A long content is given as a letter and a count. */
function expanded({ repeat, ...args }: JsonObject): JsonObject {
  if (!Array.isArray(repeat)) return args
  return { ...args, content: (repeat[0] as string).repeat(Number(repeat[1])) }
}
