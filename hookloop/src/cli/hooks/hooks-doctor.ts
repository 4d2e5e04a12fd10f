import { resolve } from 'node:path'
import { partsOf } from '../../agent/known-agents.ts'
import type { Capability } from '../../agent/capability.ts'
import { createAgent } from '../../create-agent.ts'
import { claudeHooks } from '../../config/claude/claude-hooks.ts'
import { doubtsIn, listHooks, problemsOf } from '../../config/list-hooks.ts'
import { projectHooks } from '../../config/project-hooks.ts'
import { TrustStore } from '../../config/trust.ts'
import { messageOf } from '../../errors.ts'
import type { Hook } from '../../hooks/hook.ts'
import { toNameTest } from '../../hooks/patterns.ts'
import { scriptedModel } from '../../models/scripted.ts'
import {
  canaryPaths,
  canaryTriggers,
  changedArguments,
  flyCanary,
  type CanaryPath,
  type CanaryTool,
} from './canary-runs.ts'
import { count } from '../terminal/amounts.ts'
import { colorsFor } from '../terminal/colors.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { jsonText } from '../terminal/json-lines.ts'
import { loadAgent } from '../agents/load-agent.ts'
import type { Place } from '../place.ts'
import { oneLine, printable } from '../terminal/printable.ts'
import { table } from '../terminal/table.ts'

export type DoctorFlags = {
  readonly agent?: string
  readonly dir?: string
  readonly user: boolean
  readonly json?: boolean
}

/** `ok`: once for each event. `never`, `missed`, `twice`: what is wrong. `–`: nothing of it happens on that path. */
type PathStatus = 'ok' | 'never' | 'missed' | 'twice' | 'failed' | '–'

type Examined = {
  readonly name: string
  readonly mode: string
  readonly on: readonly string[]
  readonly paths: { readonly [P in CanaryPath]?: PathStatus }
  /** Why it was not tried. */
  readonly skipped?: string
}

type Report = {
  readonly guards: readonly Examined[]
  readonly problems: readonly string[]
  readonly notes: readonly string[]
}

/**
 * `hookloop hooks doctor`: lets every guard, and every hook that may block, watch over canaries on every path, and says what
 * is wrong with them. The hooks are really run; tools and models are not.
 */
export async function hooksDoctor(flags: DoctorFlags, place: Place): Promise<ExitCode> {
  const dir = resolve(flags.dir ?? '.')
  const own = await ownCapabilities(flags.agent)
  const problems: string[] = [...filesOf(dir, flags)]
  const files = filesHooks(dir, flags, problems)
  const hooks = [...own, ...files].flatMap((each) => each.hooks ?? [])
  const tools = toolsFor(own, hooks)
  if (flags.json !== true && hooks.some(isExamined)) {
    place.err.write(`The hooks are really run, many times; tools and models are not.\n`)
  }
  problems.push(...unmatched(hooks, tools, flags.agent !== undefined))
  const guards: Examined[] = []
  for (const hook of hooks.filter(isExamined)) guards.push(await examine(hook, tools))
  for (const { name, paths } of guards) {
    const wrong = Object.entries(paths).filter(([, status]) => !['ok', '–'].includes(status))
    problems.push(...wrong.map(([path, status]) => `${name} ${words[status as 'never']} on the path "${path}"`))
  }
  problems.push(...(await conflicts(hooks, tools)))
  const notes = guards.flatMap(({ name, skipped }) =>
    skipped === undefined ? [] : [`${name} was not tried: ${skipped}`],
  )
  const report: Report = { guards, problems: [...new Set(problems)], notes }
  place.out.write(flags.json === true ? `${jsonText(report)}\n` : told(report, place))
  return report.problems.length > 0 ? exitCodes.failed : exitCodes.completed
}

const words = {
  never: 'never fires',
  missed: 'misses events',
  twice: 'fires more than once for an event',
  failed: 'could not be tried',
}

async function ownCapabilities(file: string | undefined): Promise<readonly Capability[]> {
  if (file === undefined) return []
  const loaded = await loadAgent(file)
  const agent = 'agent' in loaded ? loaded.agent : createAgent({ ...loaded.options, model: scriptedModel([]) })
  const usual = partsOf(createAgent({ model: scriptedModel([]) })).capabilities.map(({ name }) => name)
  return partsOf(agent).capabilities.filter(({ name }) => !usual.includes(name)) // limits are in force while canaries fly
}

/** What is wrong with the files themselves. */
function filesOf(dir: string, { user }: DoctorFlags): readonly string[] {
  const trust = new TrustStore()
  const listed = listHooks({ dir, trust, ...(!user && { home: false, claudeHome: false }) })
  const doubts = listed.problems.length > 0 ? [] : doubtsIn(dir, trust)
  return [
    ...listed.problems,
    ...doubts.map(({ path, status }) =>
      status === 'changed'
        ? `${path} changed after it was trusted: its hooks do not run`
        : `${path} is not trusted: its hooks do not run`,
    ),
    ...problemsOf({ dir, ...(!user && { home: false, claudeHome: false }) }),
    ...listed.hooks.flatMap(({ trigger, event, source, runs }) =>
      trigger === undefined ? [`${event ?? ''} of ${source} never fires here: ${oneLine(runs, 60)}`] : [],
    ),
  ]
}

function filesHooks(dir: string, { user }: DoctorFlags, problems: string[]): readonly Capability[] {
  try {
    const home = user ? {} : { home: false as const }
    return [projectHooks({ dir, untrusted: 'leaveOut', ...home }), claudeHooks({ dir, ...home })]
  } catch (error) {
    problems.push(messageOf(error))
    return []
  }
}

/** Guards, and what may block although it changes things. What asks a model would cost money. */
function isExamined({ mode, action, shadow }: Hook): boolean {
  return !shadow && (mode === 'guard' || (mode === 'transform' && action !== undefined))
}

async function examine(hook: Hook, tools: readonly CanaryTool[]): Promise<Examined> {
  const { name, mode, triggers, action } = hook
  const about = { name, mode: mode === 'transform' ? 'hook' : mode, on: triggers }
  if (action?.asks === true || action?.kind === 'subagent') return { ...about, paths: {}, skipped: 'it asks a model' }
  if (!triggers.some((each) => canaryTriggers.includes(each))) {
    return { ...about, paths: {}, skipped: 'no canary comes by where it fires' }
  }
  const statuses = await Promise.all(
    canaryPaths.map(async (path) => [path, await statusOn(hook, path, tools)] as const),
  )
  return { ...about, paths: Object.fromEntries(statuses) }
}

async function statusOn(hook: Hook, path: CanaryPath, tools: readonly CanaryTool[]): Promise<PathStatus> {
  const isInherited = hook.mode === 'guard' || hook.action?.inherited === true
  try {
    const all = await flyCanary(hook, path, tools)
    const isDone = path === 'resume' && hook.mode === 'transform' // what changed a call did so before it waited
    const seen = all.filter(({ trigger }) => !isDone || trigger !== 'beforeToolUse')
    const [fired, expected] = [sum(seen.map((each) => each.fired)), sum(seen.map((each) => each.expected))]
    if (expected === 0 && fired === 0) return '–'
    if (fired === expected) return 'ok'
    if (hook.when !== undefined && fired < expected) return fired === 0 ? '–' : 'ok' // it says itself when it does
    if (path === 'subagent' && !isInherited) return '–'
    if (fired > expected) return 'twice'
    return fired === 0 ? 'never' : 'missed'
  } catch {
    return 'failed'
  }
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, each) => total + each, 0)
}

/** The tools of the agent, or, where there is none, those that hooks name. */
function toolsFor(own: readonly Capability[], hooks: readonly Hook[]): readonly CanaryTool[] {
  const declared = own.flatMap(({ tools = [] }) => tools)
  if (declared.length > 0) {
    return declared.map(({ name, inputSchema }) => ({ name, inputSchema }))
  }
  const named = hooks.flatMap(({ tool }) => (typeof tool === 'string' && !tool.includes('*') ? [tool] : []))
  const names = new Set([...named, 'bash', 'read_file', 'write_file', 'edit_file'])
  return [...names].map((name) => ({ name, inputSchema: usualInput }))
}

const usualInput = {
  type: 'object',
  properties: { command: { type: 'string' }, path: { type: 'string' }, content: { type: 'string' } },
}

/** Hooks for tools that the agent does not have. */
function unmatched(hooks: readonly Hook[], tools: readonly CanaryTool[], hasAgent: boolean): readonly string[] {
  if (!hasAgent) return []
  return hooks.flatMap(({ name, tool, mode }) => {
    if (typeof tool !== 'string' && !(tool instanceof RegExp)) return []
    const fits = toNameTest(tool)
    if (tools.some((each) => fits(each.name))) return []
    const near = tools.find((each) => each.name.toLowerCase() === String(tool).toLowerCase())
    const hint = near === undefined ? '' : `; did you mean "${near.name}"?`
    return [
      `the ${mode === 'transform' ? 'hook' : mode} "${name}" is for ${String(tool)}, and no tool is called so${hint}`,
    ]
  })
}

/** Two hooks that change the same argument: which of them wins is a matter of their order. */
async function conflicts(hooks: readonly Hook[], tools: readonly CanaryTool[]): Promise<readonly string[]> {
  const rewriters = hooks.filter(
    ({ mode, triggers, shadow, action }) =>
      mode === 'transform' &&
      !shadow &&
      triggers.includes('beforeToolUse') &&
      action?.asks !== true &&
      action?.kind !== 'subagent',
  )
  if (rewriters.length < 2) return []
  try {
    const changes = await changedArguments(rewriters, tools)
    const byPlace = Map.groupBy(changes, ({ call, path }) => `${call} ${path}`)
    const found = [...byPlace.values()].flatMap((these) => {
      const by = [...new Set(these.map(({ hook }) => hook))]
      return by.length < 2
        ? []
        : [`${by.map((name) => `"${name}"`).join(' and ')} both change ${these[0]!.path}; the last one wins`]
    })
    return [...new Set(found)]
  } catch (error) {
    return [`the hooks that change arguments could not be tried together: ${messageOf(error)}`]
  }
}

function told({ guards, problems, notes }: Report, { out, env }: Place): string {
  const { bold, dim, red, green } = colorsFor(out, env)
  const paint = (status: PathStatus): ((text: string) => string) =>
    status === 'ok' ? green : status === '–' ? dim : red
  const rows = guards
    .filter(({ skipped }) => skipped === undefined)
    .map(({ name, mode, paths }) => [
      { text: oneLine(name, 40) },
      { text: mode, paint: dim },
      ...canaryPaths.map((path) => ({ text: paths[path] ?? '', paint: paint(paths[path] ?? '–') })),
    ])
  const head = [
    { text: 'hook', paint: bold },
    { text: '' },
    ...canaryPaths.map((path) => ({ text: path, paint: bold })),
  ]
  const lines = [
    ...(rows.length === 0 ? [] : [table([head, ...rows]), '']),
    ...notes.map((note) => dim(printable(note))),
    ...problems.map((problem) => `${red('✖')} ${printable(problem)}`),
    problems.length === 0
      ? `${green('✔')} Nothing is wrong with ${count(guards.length, 'hook')} that may say no.`
      : `${count(problems.length, 'problem')}.`,
  ]
  return `${lines.join('\n')}\n`
}
