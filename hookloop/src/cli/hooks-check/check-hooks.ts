import { partsOf } from '../../core/agent/agent-parts.ts'
import { createAgent } from '../../create-agent.ts'
import { examplePayload } from '../../hook-files/claude/events/example-payload.ts'
import { eventSpec } from '../../hook-files/claude/events/claude-events.ts'
import { toMatcher } from '../../hook-files/claude/events/matcher.ts'
import { namesOf } from '../../hook-files/claude/events/tool-names.ts'
import { describeHandler } from '../../hook-files/claude/load/describe-handler.ts'
import type { Handler, HookGroup } from '../../hook-files/claude/load/handlers.ts'
import { readSettings } from '../../hook-files/claude/load/read-settings.ts'
import { trustedGroups } from '../../hook-files/claude/load/trusted-groups.ts'
import { runHandler } from '../../hook-files/claude/run/run-handler.ts'
import type { FileHook } from '../../hook-files/files/hook-file.ts'
import { findHooks } from '../../hook-files/files/project-hooks.ts'
import type { ListedHooks, ListPlaces } from '../../hook-files/list-hooks.ts'
import { statusText } from '../../hook-files/trust/trust-store.ts'
import { uniqueByPath } from '../../hook-files/trust/fingerprint.ts'
import { defined } from '../../hook-files/defined.ts'
import { messageOf } from '../../errors.ts'
import { hook } from '../../core/hooks/hook.ts'
import { toNameTest } from '../../core/hooks/patterns.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { fire } from '../../testing/fire.ts'
import { loadAgent } from '../agents/load-agent.ts'

/** A hook that was run once with an example event. */
export type CheckedHook = {
  readonly name: string
  readonly source: string
  readonly status: 'ok' | 'fails' | 'notRun'
  /** How it failed, or why it was not run. */
  readonly why?: string
}

export type HookCheck = { readonly checked: readonly CheckedHook[]; readonly problems: readonly string[] }

export type CheckOptions = ListPlaces & {
  readonly listed: ListedHooks
  /** A module with an agent, whose tools the hooks should match. */
  readonly agent?: string | undefined
  readonly signal?: AbortSignal
}

const TIMEOUT_MS = 10_000

/** Runs each trusted hook once, and finds files and hooks that do not do what they were written for. */
export async function checkHooks({ listed, agent, signal, ...places }: CheckOptions): Promise<HookCheck> {
  const { trust, home, claudeHome, ...where } = places
  const { dir } = where
  const problems: string[] = [...listed.problems]
  const settings = readSettings({ ...where, ...defined({ home: claudeHome }) })
  const { groups, untrusted } = trustedGroups(settings, { dir, trust })
  const own = ownHooks({ dir, trust, ...defined({ home }) }, problems)
  for (const file of uniqueByPath([...own.untrusted, ...untrusted])) {
    problems.push(`${file.path} ${statusText(file)}: its hooks do not run`)
  }
  const tools = agent === undefined ? undefined : await toolsOf(agent)
  const checks = [
    ...own.hooks.map((each) => checkHook(each, tools)),
    ...groups.flatMap((group) => group.handlers.map((handler) => checkHandler(handler, { group, dir, tools, signal }))),
  ]
  const results = await Promise.all(checks)
  problems.push(...results.flatMap((each) => each.problems), ...neverFiring(listed))
  return { checked: results.map(({ checked }) => checked), problems: [...new Set(problems)] }
}

type Result = { readonly checked: CheckedHook; readonly problems: readonly string[] }

function ownHooks(
  places: Parameters<typeof findHooks>[0],
  problems: string[],
): Pick<ReturnType<typeof findHooks>, 'hooks' | 'untrusted'> {
  try {
    return findHooks(places)
  } catch (error) {
    problems.push(messageOf(error))
    return { hooks: [], untrusted: [] }
  }
}

/** The tools of an agent, without those that every agent has. */
async function toolsOf(file: string): Promise<readonly string[]> {
  const loaded = await loadAgent(file)
  const agent = 'agent' in loaded ? loaded.agent : createAgent({ ...loaded.options, model: scriptedModel([]) })
  return partsOf(agent).capabilities.flatMap(({ tools = [] }) => tools.map(({ name }) => name))
}

async function checkHook(
  { hook: made, source, line }: FileHook,
  tools: readonly string[] | undefined,
): Promise<Result> {
  const { name, action, triggers, mode } = made
  const tool = made.tool as string | RegExp | undefined // a file names no tool object
  const [trigger] = triggers
  const matches = tool === undefined ? () => true : toNameTest(tool)
  const place = { name, source: `${source.file}:${line}` }
  const unmatched = unmatchedTool({
    name,
    matcher: String(tool),
    tools,
    matches: tool === undefined ? undefined : matches,
  })
  if (action!.kind === 'prompt' || action!.kind === 'subagent') {
    return { checked: { ...place, status: 'notRun', why: 'it calls a model' }, problems: unmatched }
  }
  try {
    // As a transform, because a guard that fails blocks. What it decides is discarded.
    const once = hook([trigger] as never, action as never, { name, timeoutMs: TIMEOUT_MS })
    await fire(once, trigger as never, exampleFacts(trigger!, tools?.find(matches) ?? String(tool ?? 'tool')))
    return { checked: { ...place, status: 'ok' }, problems: unmatched }
  } catch (error) {
    const effect = mode === 'guard' ? ', so it blocks' : ''
    return failed(place, messageOf(error), unmatched, effect)
  }
}

function exampleFacts(trigger: string, name: string): object {
  return trigger.endsWith('ToolUse') ? { toolCall: { name, args: exampleArguments } } : {}
}

const exampleArguments = { command: 'true', path: 'example', file_path: 'example' }

type HandlerPlace = {
  readonly group: HookGroup
  readonly dir: string
  readonly tools: readonly string[] | undefined
  readonly signal: AbortSignal | undefined
}

async function checkHandler(handler: Handler, { group, dir, tools, signal }: HandlerPlace): Promise<Result> {
  const { event, matcher, source } = group
  const place = { name: `${event} ${describeHandler(handler)}`, source: source.file }
  const notRun = (why: string): Result => ({ checked: { ...place, status: 'notRun', why }, problems: [] })
  const { trigger, isOnDemand, matches: field } = eventSpec(event)
  if (trigger === undefined) return notRun('its event never fires')
  if (isOnDemand === true) return notRun('its event fires only on request')
  const test = toMatcher(matcher, event)
  const fits = (tool: string): boolean => namesOf(tool).some(test.matches)
  const isOfTools = field === 'tool_name' && matcher !== undefined
  const unmatched = [
    ...(test.problem === undefined ? [] : [`${source.file}: ${test.problem}`]),
    ...unmatchedTool({ name: place.name, matcher: matcher ?? '', tools, matches: isOfTools ? fits : undefined }),
  ]
  if (handler.type !== 'command' && handler.type !== 'http') {
    return { ...notRun(`handlers of type ${handler.type} need an agent`), problems: unmatched }
  }
  const tool = { tool_name: tools?.find(fits) ?? matcher ?? 'Bash', tool_input: exampleArguments }
  const payload = examplePayload(field === 'tool_name' ? tool : {}, event, dir)
  const context = { projectDir: dir, cwd: dir, env: process.env, passEnv: [], signal }
  const limited = { ...handler, timeoutMs: Math.min(handler.timeoutMs, TIMEOUT_MS) }
  const { failed: how, problem, hint } = await runHandler(limited, payload, { source, context })
  if (how === undefined && hint === undefined) return { checked: { ...place, status: 'ok' }, problems: unmatched }
  return failed(place, problem ?? hint ?? 'it failed', unmatched)
}

function failed(
  place: Pick<CheckedHook, 'name' | 'source'>,
  why: string,
  problems: readonly string[],
  effect = '',
): Result {
  return {
    checked: { ...place, status: 'fails', why },
    problems: [...problems, `"${place.name}" fails${effect}: ${why}`],
  }
}

function unmatchedTool(of: {
  readonly name: string
  readonly matcher: string
  readonly tools: readonly string[] | undefined
  readonly matches: ((tool: string) => boolean) | undefined
}): readonly string[] {
  const { name, matcher, tools, matches } = of
  if (tools === undefined || matches === undefined || tools.some(matches)) return []
  const near = tools.find((each) => each.toLowerCase() === matcher.toLowerCase())
  const hint = near === undefined ? '' : `. Did you mean "${near}"?`
  return [`"${name}" is for the tool ${matcher}, which the agent does not have${hint}`]
}

function neverFiring({ hooks }: ListedHooks): readonly string[] {
  return hooks.flatMap(({ trigger, event, source }) =>
    trigger === undefined ? [`${event} in ${source} never fires in Hookloop`] : [],
  )
}
