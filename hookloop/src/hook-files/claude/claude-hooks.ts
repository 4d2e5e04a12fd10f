import { resolve } from 'node:path'
import type { ApprovalPolicy, AskedAnswer, Capability } from '../../core/agent/capability.ts'
import { checkOptions, invalidOption } from '../../values/check-options.ts'
import type { Mcp } from '../../capabilities/mcp/mcp.ts'
import type { JsonObject } from '../../values/json.ts'
import { checkExists } from '../../system/files/check-exists.ts'
import { action, type Action } from '../../core/hooks/action.ts'
import { BaseContext } from '../../core/hooks/base-context.ts'
import { hook, type Hook } from '../../core/hooks/hook.ts'
import type { PlainTrigger } from '../../core/hooks/triggers.ts'
import { statusText, TrustStore, type UntrustedFile } from '../trust/trust-store.ts'
import { claudeEvents, eventSpec, type ClaudeEvent } from './events/claude-events.ts'
import { commandOf } from './events/payload.ts'
import { TriggerRunner, type RunnerSettings } from './run/trigger-runner.ts'
import { describeProblem, leftOutText, type HookGroup } from './load/handlers.ts'
import { HookTable } from './run/run-event.ts'
import type { HandlerContext } from './run/run-handler.ts'
import { readSettings, type PluginPlace, type Settings } from './load/read-settings.ts'
import { skillTracking } from '../active-owners.ts'
import { scriptWatch, trustedGroups } from './load/trusted-groups.ts'

/**
 * Options of `claudeHooks`.
 *
 * @interface
 */
export type ClaudeHooksOptions = RunnerSettings & {
  /** The project: the folder that contains `.claude/settings.json`. */
  readonly dir: string
  /** The folder that contains the `.claude` folder of the user. Default: the home folder. `false`: it is not read. */
  readonly home?: string | false
  /** The settings file of an organisation. Its hooks cannot be disabled; one that is missing or malformed throws. Default none. */
  readonly managed?: string
  /** Folders of plugins, or `{ dir, options }`. A missing folder throws. Default none. */
  readonly plugins?: readonly PluginPlace[]
  /** More settings, as an object. A mistake throws. Default none. */
  readonly settings?: JsonObject
  /** The files that the user trusts. Default: the list of the user. `'all'`: the caller has read all files. */
  readonly trust?: TrustStore | 'all'
  /** Environment variables that scripts get although they look like secrets. Default none. */
  readonly passEnv?: readonly string[]
  /** How the approver is reached, as in `approval`. PermissionRequest hooks then run before every question; without it (default) they run for questions of other hooks. */
  readonly answer?: ApprovalPolicy['answer']
  /** The MCP servers that `mcp_tool` handlers call, from `mcp()`. Default none. */
  readonly mcp?: Pick<Mcp, 'call'>
}

const optionNames = 'dir home managed plugins settings trust passEnv answer models setup terminal mcp'.split(' ')

/** Runs after all other hooks, so that it judges what they changed. */
const LAST = -1_000_000
/** Runs before a command is replaced by its text, so that it judges what the user typed. */
const FIRST = 1_000_000

/**
 * Runs the hooks that a project has for Claude Code. The handlers of an event run in parallel on the same input, and their
 * answers are merged as Claude Code does it.
 *
 * @example
 * createAgent({ model, use: [bash(), claudeHooks({ dir: process.cwd() })] })
 */
export function claudeHooks(options: ClaudeHooksOptions): Capability {
  checkOptions('claudeHooks', options, optionNames)
  checkPlaces(options)
  const { trust = new TrustStore() } = options
  if (trust !== 'all') trust.checkOutside(options.dir)
  const dir = resolve(options.dir)
  const settings = readSettings({ ...options, dir })
  const { groups, untrusted } = trustedGroups(settings, { dir, trust })
  rejectMistakes(settings)
  const warnings = leftOut(settings, untrusted)
  const remarks = settings.notes.map((note) => `${describeProblem(note)}.`)
  const notes = [...warnings, ...remarks, ...neverFiring(groups), ...seldomFiring(groups, options)]
  return { ...combineGroups(groups, { options, dir, settings }), notes, warnings }
}

/** Guards in a file or folder that code names must not be missing because of its path. */
function checkPlaces({ dir, managed, plugins = [] }: ClaudeHooksOptions): void {
  checkExists('claudeHooks', 'dir', dir, 'folder')
  if (managed !== undefined) checkExists('claudeHooks', 'managed', managed, 'file')
  for (const plugin of plugins) {
    const given = typeof plugin === 'string' ? { dir: plugin } : plugin
    checkOptions('claudeHooks: plugins', given, ['dir', 'options'])
    checkExists('claudeHooks', 'plugins', given.dir, 'folder')
  }
}

/** A mistake in code throws, and so does a file of an organisation that cannot be used at all: its guards would be missing. */
function rejectMistakes({ problems }: Settings): void {
  const mistake = problems.find(
    ({ source: { kind }, where }) => kind === 'given' || (kind === 'managed' && where === ''),
  )
  if (mistake !== undefined) throw invalidOption('claudeHooks', describeProblem(mistake), mistake.source.file)
}

type CombineOptions = {
  readonly options: ClaudeHooksOptions
  readonly dir: string
  readonly settings: Settings
}

/** A capability that runs groups of handlers, without notes. */
function combineGroups(groups: readonly HookGroup[], { options, dir, settings }: CombineOptions): Capability {
  const table = new HookTable(groups)
  const changedSince = scriptWatch(groups, dir)
  const { answer, mcp, models = {} } = options
  const context: HandlerContext = {
    projectDir: dir,
    cwd: dir,
    env: process.env,
    passEnv: options.passEnv ?? [],
    allowedHttpUrls: settings.allowedHttpUrls,
    allowedHttpVariables: settings.allowedHttpVariables,
    changedSince,
    callMcp: mcp && ((server, tool, { input, signal }) => mcp.call(tool, input, { server, signal })),
  }
  const group = new TriggerRunner(table, { ...options, context, hasApproval: answer !== undefined })
  return {
    name: 'claudeHooks',
    hooks: hooksFor(table, group, groups),
    models: table.asksModels ? Object.values(models) : [],
    ...(answer !== undefined && { approval: approvalFor(group, answer) }),
  }
}

function hooksFor(table: HookTable, group: TriggerRunner, groups: readonly HookGroup[]): readonly Hook[] {
  if (groups.length === 0) return []
  const name = 'claude'
  const performing = (perform: Action['perform']): Action =>
    action({
      kind: 'claude',
      label: name,
      inherited: true,
      fitting: true,
      limitsItself: true,
      ...(table.asksModels && { asks: true }),
      perform,
    })
  const perform = performing((ctx, { signal }) => group.perform(ctx, signal))
  const decide = hook(triggersOf(table), perform, { name, priority: LAST })
  // MessageDisplay changes nothing, so streaming does not wait for it.
  const display = hook('afterInference', perform, { name: `${name}.display`, priority: LAST, stream: 'after' })
  const expand = hook(
    'onUserInput',
    performing((ctx, { signal }) => group.performExpansion(ctx, signal)),
    {
      name: `${name}.expansion`,
      priority: FIRST,
      when: (ctx) => ctx instanceof BaseContext && commandOf(ctx) !== undefined,
    },
  )
  const skills = [...new Set(groups.flatMap(({ source }) => (source.kind === 'skill' ? (source.name ?? []) : [])))]
  return [
    ...(skills.length > 0 ? [skillTracking(skills, name)] : []),
    ...(table.has('UserPromptExpansion') ? [expand] : []),
    decide,
    ...(table.has('MessageDisplay') ? [display] : []),
  ]
}

/** The triggers of its events, and those where it tracks the session, background handlers and approvals. */
function triggersOf(table: HookTable): PlainTrigger[] {
  const fired = table.events.flatMap((event) => {
    const { trigger, alsoAt, isOnDemand } = eventSpec(event)
    return isOnDemand === true ? [] : [trigger ?? [], alsoAt ?? []].flat()
  })
  const late: PlainTrigger[] = table.hasAsync ? ['onUserInput'] : []
  const hasBackground = table.hasAsync || table.has('Notification')
  const background: PlainTrigger[] = hasBackground ? ['afterExecution', 'onSessionEnd'] : []
  const asked: PlainTrigger[] = table.has('PermissionRequest') ? ['afterStep'] : []
  const all = new Set<PlainTrigger>(['onSessionStart', ...fired, ...late, ...background, ...asked])
  all.delete('afterInference')
  return [...all]
}

/** PermissionRequest hooks decide before the approver does. */
function approvalFor(group: TriggerRunner, answer: ApprovalPolicy['answer']): ApprovalPolicy {
  return {
    expiresInMs: undefined,
    onUnknownOutcome: 'tell',
    asksAbout: () => false,
    async answer(approval, signal, asker): Promise<AskedAnswer> {
      const answered = await group.answerApproval(approval.toolCall, asker, signal)
      if (answered !== undefined) return answered
      if (typeof answer === 'function') {
        group.notify(approval.toolCall, asker)
        return answer(approval, signal, asker)
      }
      if (answer === 'suspend') return 'suspend'
      return { block: `Not run: it needs approval (${approval.message}), and there is no approver.` }
    },
  }
}

function neverFiring(groups: readonly HookGroup[]): ReadonlySet<string> {
  const never = groups.filter(({ event }) => !firesHere(event))
  return new Set(never.map(({ event, source }) => `${event} in ${source.file} never fires here.`))
}

function seldomFiring(groups: readonly HookGroup[], { answer }: ClaudeHooksOptions): readonly string[] {
  if (answer !== undefined || !groups.some(({ event }) => event === 'PermissionRequest')) return []
  return [
    'PermissionRequest hooks run for questions of other Claude Code hooks only. ' +
      'For all questions, give claudeHooks the option "answer" instead of using approval().',
  ]
}

function leftOut({ problems }: Settings, untrusted: readonly UntrustedFile[]): readonly string[] {
  return [
    ...problems.map(leftOutText),
    ...untrusted.map(
      (file) => `${file.path} ${statusText(file)}: its hooks do not run. Review it with: hookloop trust`,
    ),
  ]
}

export function firesHere(event: ClaudeEvent): boolean {
  return 'trigger' in claudeEvents[event]
}
