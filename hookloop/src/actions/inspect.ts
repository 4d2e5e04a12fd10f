import {
  readJson,
  runForHook,
  toTokens,
  type ActionContext,
  type HookAgent,
  type Run,
  type TokenUsage,
} from '../plugin.ts'
import { isJsonObject } from '../values/json.ts'
import { AgentError } from '../errors.ts'

/** The JSON that an agent ended with, or why there is none, and what the agent spent. */
export type Inspection = { readonly result: unknown; readonly problem?: string; readonly spent: TokenUsage }

/** Runs an agent that inspects the event of a hook. */
export async function inspect(ctx: ActionContext, agent: HookAgent): Promise<Inspection> {
  const run = await runForHook(ctx, agent)
  if (run === undefined) throw new AgentError('HOOK_FAILED', `"${agent.name}" has no run to inspect.`)
  const spent = toTokens(run.state.usage)
  if (run.status !== 'completed') return { result: undefined, problem: problemOf(run), spent }
  const output: unknown = run.output
  return { result: isJsonObject(output) ? output : readJson(String(output)), spent }
}

function problemOf(run: Exclude<Run, { readonly status: 'completed' }>): string {
  switch (run.status) {
    case 'stopped':
      return `was stopped by "${run.by}": ${run.final.message}`
    case 'failed':
      return `failed: ${run.error.message}`
    case 'cancelled':
      return 'was cancelled'
    case 'suspended':
      return 'was suspended for approval, which a hook cannot wait for'
    default:
      return run satisfies never
  }
}
