import { agentTool } from '../../agent/agent-tool.ts'
import type { Run } from '../../agent/run.ts'
import { tool, type Tool } from '../../agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import type { Json, JsonObject } from '../../data/json.ts'
import type { TimedLedgerEntry } from '../../data/ledger.ts'
import { guard, observe, type Hook } from '../../hooks/hook.ts'
import { isAround, triggerNames, type PlainTrigger } from '../../hooks/triggers.ts'
import { scriptedModel } from '../../models/scripted.ts'

/** The ways a call may come about. A guard has to see it on every one of them. */
export const canaryPaths = ['run', 'stream', 'iterate', 'parallel', 'resume', 'subagent'] as const

export type CanaryPath = (typeof canaryPaths)[number]

/** A tool that a canary stands in for. */
export type CanaryTool = { readonly name: string; readonly inputSchema?: JsonObject | undefined }

/** How often a hook fired at a trigger, and how often it should have. */
export type Fired = { readonly trigger: string; readonly fired: number; readonly expected: number }

/**
 * Lets one hook watch over a run on one path, with nothing else in force, a model that calls every tool once, and tools that
 * do nothing. Counts where it fired beside a hook of the same kind that always does.
 */
export async function flyCanary(hook: Hook, path: CanaryPath, tools: readonly CanaryTool[]): Promise<readonly Fired[]> {
  const witness = witnessOf(hook)
  const run = await paths[path]([hook, witness], tools)
  const at = (name: string, trigger: string): readonly TimedLedgerEntry[] =>
    run.ledger.filter((entry) => entry.trigger === trigger && entry.hook === name && !isAside(entry))
  return hook.triggers
    .map((trigger) => ({
      trigger,
      fired: at(hook.name, trigger).length,
      expected: at(witness.name, trigger).length,
    }))
    .filter(({ fired, expected }) => fired > 0 || expected > 0)
}

/** Which of several hooks changed which argument of which call, when all of them are in force. */
export async function changedArguments(
  hooks: readonly Hook[],
  tools: readonly CanaryTool[],
): Promise<readonly { readonly call: string; readonly path: string; readonly hook: string }[]> {
  const run = await paths.run(hooks, tools)
  return run.ledger.flatMap(({ trigger, call = '', changes = [], hook: by }) =>
    trigger === 'beforeToolUse' ? changes.map(({ path }) => ({ call, path, hook: by })) : [],
  )
}

/** What a hook asked of a model, or was kept from, is told beside its own entry. */
function isAside({ decision = '' }: TimedLedgerEntry): boolean {
  return decision === 'skipped' || decision === 'inferred' || decision === 'inferenceFailed'
}

/** Fires where the hook should, and has no opinion. It comes first, because what is blocked is not judged any more. */
function witnessOf({ triggers, tool: selected, mode }: Hook): Hook {
  const options = { name: 'canary:witness', priority: 1e12, ...(selected !== undefined && { tool: selected }) }
  const plain = triggers.filter((trigger) => !isAround(trigger)) as PlainTrigger[]
  if (mode !== 'guard') return observe(plain, () => undefined, options as object)
  return guard(plain as 'beforeToolUse'[], (ctx) => ctx, options as object)
}

type Flight = (hooks: readonly Hook[], tools: readonly CanaryTool[]) => Promise<Run<unknown>>

const paths: { readonly [P in CanaryPath]: Flight } = {
  run: (hooks, tools) => agentOf(hooks, tools).run('canary'),
  async stream(hooks, tools) {
    const live = agentOf(hooks, tools).stream('canary')
    await everything(live)
    return live.run
  },
  async iterate(hooks, tools) {
    const live = agentOf(hooks, tools).iterate('canary')
    await everything(live)
    return live.run
  },
  parallel: (hooks, tools) => agentOf(hooks, tools, { concurrent: true }).run('canary'),
  async resume(hooks, tools) {
    const asks = guard('beforeToolUse', (ctx) => ctx.ask('canary'), { name: 'canary:asks', priority: 1e11 })
    let run = await agentOf([asks], tools, { waits: true }).run('canary') // what the hook would block could not be resumed
    const before = run.ledger.length
    const agent = agentOf([...hooks, asks], tools, { waits: true })
    for (let round = 0; run.status === 'suspended' && round < 10; round++) {
      run = await agent.resume(run, {
        answers: Object.fromEntries(run.pending.map(({ id }) => [id, 'allow' as const])),
      })
    }
    return { ...run, ledger: run.ledger.slice(before) }
  },
  subagent(hooks, tools) {
    const inner = { model: modelCalling(tools), tools: tools.map(({ name }) => name) }
    const ask = agentTool({
      name: 'canary_subagent',
      description: 'A canary.',
      input: { type: 'object' },
      to: () => ({ name: 'canary', to: inner, input: 'canary' }),
    })
    const model = modelCalling([{ name: 'canary_subagent' }])
    return createAgent({ model, use: [...stand(hooks), ...canaries(tools, false), ask] }).run('canary')
  },
}

async function everything(live: AsyncIterable<unknown>): Promise<void> {
  const each = live[Symbol.asyncIterator]()
  while ((await each.next()).done !== true);
}

type How = { readonly concurrent?: boolean; readonly waits?: boolean }

function agentOf(
  hooks: readonly Hook[],
  tools: readonly CanaryTool[],
  { concurrent = false, waits = false }: How = {},
) {
  const asking = approval(waits ? 'suspend' : () => 'allow')
  return createAgent({ model: modelCalling(tools), use: [...stand(hooks), ...canaries(tools, concurrent), asking] })
}

/** Limits of the agent are hooks like any others; those that there are by default are out of the way. */
function stand(hooks: readonly Hook[]) {
  return [guards({ maxSteps: 4 }), ...hooks]
}

function canaries(tools: readonly CanaryTool[], concurrent: boolean): readonly Tool[] {
  return tools.map(({ name }) =>
    tool({
      name,
      description: 'A canary.',
      input: { type: 'object' },
      concurrent,
      execute: () => 'canary',
    }),
  )
}

function modelCalling(tools: readonly CanaryTool[]) {
  const toolCalls = tools.map(({ name, inputSchema }) => ({ name, args: sampleOf(inputSchema ?? {}) }))
  return scriptedModel(({ messages }) => (messages.at(-1)?.role === 'tool' ? 'canary' : { toolCalls }))
}

/** A value that fits a schema, more or less: guards look at arguments. */
export function sampleOf(schema: JsonObject, depth = 0): Json {
  const { type, properties, items, enum: values, default: usual, const: only, anyOf, oneOf } = schema
  if (only !== undefined) return only
  if (usual !== undefined) return usual
  if (Array.isArray(values)) return (values[0] as Json | undefined) ?? null
  const [choice] = [anyOf, oneOf].flatMap((each) => (Array.isArray(each) ? (each as JsonObject[]) : []))
  if (choice !== undefined && depth < 5) return sampleOf(choice, depth + 1)
  switch (Array.isArray(type) ? type[0] : type) {
    case 'string':
      return 'canary'
    case 'number':
    case 'integer':
      return 1
    case 'boolean':
      return false
    case 'array':
      return items === undefined || depth > 4 ? [] : [sampleOf(items as JsonObject, depth + 1)]
    case 'null':
      return null
    default: {
      const inner = Object.entries((properties ?? {}) as { readonly [name: string]: JsonObject })
      return depth > 4 ? {} : Object.fromEntries(inner.map(([name, each]) => [name, sampleOf(each, depth + 1)]))
    }
  }
}

/** Where canaries come by, whatever the agent. */
export const canaryTriggers: readonly string[] = triggerNames.filter(
  (name) =>
    !['onSessionStart', 'onSessionEnd', 'onError', 'onPause', 'onResume', 'onSubagentStop'].includes(name) &&
    !name.includes('Compaction'),
)
