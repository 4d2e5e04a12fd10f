import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAgent } from '../../create-agent.ts'
import type { Run } from '../../core/agent/run.ts'
import type { Use } from '../../core/agent/capability.ts'
import { textOfJson, type Json } from '../../values/json.ts'
import { scriptedModel, type ScriptedCall } from '../../models/scripted.ts'
import { mcp, type Mcp } from './mcp.ts'
import type { McpOptions, McpServer } from './settings.ts'

/** A server of this folder as a process of the Node that runs the tests. Our environment, which has the cache, does not reach it. */
export function program(file: string, ...args: readonly string[]): { command: string; args: readonly string[] } {
  const cache = JSON.stringify(process.env['NODE_COMPILE_CACHE'])
  const enableCache = `--import=data:text/javascript,import { enableCompileCache } from 'node:module'; enableCompileCache(${cache})`
  const server = join(import.meta.dirname, file)
  return { command: process.execPath, args: ['--no-warnings', enableCache, server, ...args] }
}

export const real = program('real-server.fixture.ts')
export const hostile = (how: string): ReturnType<typeof program> => program('hostile-server.fixture.ts', how)

/** One server without approvals, closed when the test ends. */
export async function connected(
  t: TestContext,
  server: McpServer,
  options: Omit<McpOptions, 'servers'> = {},
): Promise<Mcp> {
  const capability = await mcp({ servers: { it: server }, ask: false, ...options })
  t.after(() => capability.close())
  return capability
}

/** Runs an agent whose model makes these calls in one step. */
export function runCalls(use: readonly Use[], calls: readonly ScriptedCall[], signal?: AbortSignal): Promise<Run> {
  const agent = createAgent({ model: scriptedModel([{ toolCalls: calls }, 'Done.']), use })
  return agent.run('Go.', signal && { signal })
}

/** The output of one call as text. */
export async function outputOf(use: Use | readonly Use[], name: string, args: Json = {}): Promise<string> {
  const { output } = await callOnce(use, name, args)
  return textOfJson(output)
}

/** The result of one call. */
export async function callOnce(
  use: Use | readonly Use[],
  name: string,
  args: Json = {},
): Promise<{ readonly status: string; readonly output: Json }> {
  const run = await runCalls(Array.isArray(use) ? use : [use], [{ name, args }])
  const { status, output } = run.state.execution!.steps.at(0)!.toolExecutions[0]!
  return { status, output }
}

export async function until(holds: () => boolean, ms = 120_000): Promise<void> {
  for (const end = performance.now() + ms; !holds(); await sleep(10)) {
    if (performance.now() > end) throw new Error('the condition did not become true')
  }
}

export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false // it has ended, perhaps while its file was read
  }
}
