import { resolve } from 'node:path'
import type { ApprovalPolicy, AskedAnswer, Capability } from '../../agent/capability.ts'
import { checkOptions, invalidOption } from '../../agent/check-options.ts'
import type { Mcp } from '../../capabilities/mcp/mcp.ts'
import type { ModelSource } from '../../state/inference.ts'
import type { JsonObject } from '../../state/json.ts'
import { action, type Action } from '../../hooks/action.ts'
import { BaseContext } from '../../hooks/base-context.ts'
import { hook, type Hook } from '../../hooks/hook.ts'
import type { PlainTrigger } from '../../hooks/triggers.ts'
import { TrustStore } from '../trust/trust-store.ts'
import { claudeEvents, eventSpec, setupTriggers, type ClaudeEvent, type SetupTrigger } from './events/claude-events.ts'
import { isExpansion } from './events/expansion-payload.ts'
import { TriggerRunner } from './run/trigger-runner.ts'
import type { HookGroup } from './load/handlers.ts'
import type { Wake } from './run/hook-memory.ts'
import { HookTable } from './run/run-event.ts'
import type { AskModel } from './run/ask-model.ts'
import type { CallMcp, HandlerContext } from './run/run-handler.ts'
import { readSettings, type PluginPlace, type Settings } from './load/read-settings.ts'
import { scriptWatch, trustedGroups, type Untrusted } from './load/trusted-groups.ts'

export type ClaudeHooksOptions = {
  /** The project: where `.claude/settings.json` is. */
  readonly dir: string
  /** Where the user's own `.claude` is; false: it is not read. */
  readonly home?: string | false
  /** Settings of an organisation, which nobody can turn off. */
  readonly managed?: string
  /** Folders of plugins, with what the user has set for them. */
  readonly plugins?: readonly PluginPlace[]
  /** Settings as an object, beside those in files. */
  readonly settings?: JsonObject
  /** Who says which files of the project may run. `'all'`: whoever wrote this line has looked at them. */
  readonly trust?: TrustStore | 'all'
  /** Variables that scripts may see although they look like secrets. */
  readonly passEnv?: readonly string[]
  /** How a person is reached when a call is asked about and no PermissionRequest hook has answered, as in `approval`. */
  readonly answer?: ApprovalPolicy['answer']
  /** What handlers of the types `prompt` and `agent` call models. Without a name, or with one that is not here, they ask that of the conversation. */
  readonly models?: { readonly [name: string]: ModelSource }
  /** Setup hooks run, once, before the first session of this process begins, and are told this. */
  readonly setup?: SetupTrigger
  /** Writes to a terminal what hooks say as `terminalSequence`: titles, notifications and bells, and nothing else. */
  readonly terminal?: (sequence: string) => void
  /**
   * Is told when a hook with `asyncRewake` has ended with 2. The model hears it with whatever is said next in that session; who
   * can say something there by himself wakes it.
   */
  readonly onWake?: (wake: Wake) => void
  /** Is told what MessageDisplay hooks want shown in place of a text, for who has not shown it yet. The text itself stays. */
  readonly onDisplay?: (text: string, shown: string) => void
  /** Asks for them instead. */
  readonly askModel?: AskModel
  /** The servers that handlers of the type `mcp_tool` call, as `mcp()` connects them. */
  readonly mcp?: Pick<Mcp, 'call'>
  /** Calls a tool of a server for them instead. */
  readonly callMcp?: CallMcp
}

const known = [
  'dir',
  'home',
  'managed',
  'plugins',
  'settings',
  'trust',
  'passEnv',
  'answer',
  'models',
  'setup',
  'terminal',
  'onWake',
  'onDisplay',
  'askModel',
  'mcp',
  'callMcp',
]

/** After every hook of the agent's own that changes something: it judges what they made. */
const LAST = -1_000_000
/** Before whatever makes a text of a command: it judges what was typed. */
const FIRST = 1_000_000

/**
 * The hooks of a project that Claude Code would run, as one hook of ours: its handlers run together on the same input, and
 * what they answer is put together as its specification says.
 */
export function claudeHooks(options: ClaudeHooksOptions): Capability {
  checkOptions('claudeHooks', options, known)
  if (typeof options.dir !== 'string' || options.dir === '') {
    throw invalidOption('claudeHooks', '"dir" must be the folder of a project', options.dir)
  }
  if (options.setup !== undefined && !setupTriggers.includes(options.setup)) {
    throw invalidOption('claudeHooks', '"setup" must be "init" or "maintenance"', options.setup)
  }
  const dir = resolve(options.dir)
  const { trust = new TrustStore() } = options
  if (trust !== 'all') trust.checkOutside(dir)
  const settings = readSettings({ ...options, dir })
  const { groups, untrusted } = trustedGroups(settings, { dir, trust })
  return { ...combineGroups(groups, { options, dir, settings }), notes: notesFor(settings, untrusted, groups) }
}

/** What groups of handlers are put together with. */
type Together = {
  readonly options: ClaudeHooksOptions
  readonly dir: string
  readonly settings: Settings
  /** Is told of each handler that is about to run. */
  readonly onRun?: () => void
}

/** Groups of handlers as one hook, without any notes. */
export function combineGroups(groups: readonly HookGroup[], { options, dir, settings, onRun }: Together): Capability {
  const table = new HookTable(groups)
  const changedSince = scriptWatch(groups, dir)
  const context: HandlerContext = {
    projectDir: dir,
    cwd: dir,
    env: process.env,
    passEnv: options.passEnv ?? [],
    allowedHttpUrls: settings.allowedHttpUrls,
    allowedHttpVariables: settings.allowedHttpVariables,
    changedSince: (...handler) => {
      onRun?.()
      return changedSince(...handler)
    },
    askModel: options.askModel,
    callMcp: options.callMcp ?? (options.mcp && callerOf(options.mcp)),
  }
  const { answer, models = {} } = options
  const group = new TriggerRunner(table, {
    context,
    models,
    skills: findSkills(groups),
    isAsked: answer !== undefined,
    setup: options.setup,
    terminal: options.terminal,
    onWake: options.onWake,
    onDisplay: options.onDisplay,
  })
  return {
    name: 'claudeHooks',
    hooks: hooksFor(table, group, groups),
    models: table.asksModels ? Object.values(models) : [],
    ...(answer !== undefined && { approval: approvalFor(group, answer) }),
  }
}

function callerOf(servers: Pick<Mcp, 'call'>): CallMcp {
  return (server, tool, { input, signal }) => servers.call(tool, input, { server, signal })
}

function hooksFor(table: HookTable, group: TriggerRunner, groups: readonly HookGroup[]): readonly Hook[] {
  if (groups.length === 0) return []
  const name = 'claude'
  const performing = (perform: Action['perform']): Action =>
    action({ kind: 'claude', label: name, inherited: true, ...(group.asksModels && { asks: true }), perform })
  const perform = performing((ctx, how) => group.perform(ctx, how))
  const decides = hook(triggersOf(table, groups), perform, { name, priority: LAST })
  // Nothing comes of what is said of an answer, so nobody who watches it being written has to wait.
  const sees = hook('afterInference', perform, { name: `${name}.display`, priority: LAST, stream: 'after' })
  const expands = hook(
    'onUserInput',
    performing((ctx, how) => group.performExpansion(ctx, how)),
    { name: `${name}.expansion`, priority: FIRST, when: (ctx) => ctx instanceof BaseContext && isExpansion(ctx) },
  )
  return [
    ...(table.has('UserPromptExpansion') ? [expands] : []),
    decides,
    ...(table.has('MessageDisplay') ? [sees] : []),
  ]
}

/** Where its events fire, and where it has to be to know the session, the skills in force and what others have decided. */
function triggersOf(table: HookTable, groups: readonly HookGroup[]): PlainTrigger[] {
  const fired = table.events.flatMap((event) => {
    const { trigger, alsoAt, isOnDemand } = eventSpec(event)
    return isOnDemand === true ? [] : [trigger ?? [], alsoAt ?? []].flat()
  })
  const skills: PlainTrigger[] = findSkills(groups).size > 0 ? ['beforeExecution', 'afterToolUse'] : []
  const late: PlainTrigger[] = table.hasAsync ? ['onUserInput'] : []
  const isBeside = table.hasAsync || table.has('Notification')
  const beside: PlainTrigger[] = isBeside ? ['afterExecution', 'onSessionEnd'] : []
  const asked: PlainTrigger[] = table.has('PermissionRequest') ? ['afterStep'] : []
  const all = new Set<PlainTrigger>(['onSessionStart', ...fired, ...skills, ...late, ...beside, ...asked])
  all.delete('afterInference')
  return [...all]
}

function findSkills(groups: readonly HookGroup[]): ReadonlySet<string> {
  return new Set(groups.flatMap(({ source }) => (source.kind === 'skill' ? (source.name ?? []) : [])))
}

/** Hooks that answer questions are asked before a person is. */
function approvalFor(group: TriggerRunner, answer: ApprovalPolicy['answer']): ApprovalPolicy {
  return {
    expiresInMs: undefined,
    onUnknownOutcome: 'tell',
    asksAbout: () => false,
    async answer(approval, signal, asker): Promise<AskedAnswer> {
      const answered = await group.answerQuestion(approval.toolCall, asker, signal)
      if (answered !== undefined) return answered
      if (typeof answer === 'function') {
        group.notify(approval.toolCall, asker)
        return answer(approval, signal, asker)
      }
      if (answer === 'suspend') return 'suspend'
      return { block: `Not run: it needs approval (${approval.message}), and nobody can be asked.` }
    },
  }
}

function notesFor(
  { problems }: Settings,
  untrusted: readonly Untrusted[],
  groups: readonly HookGroup[],
): readonly string[] {
  const never = groups
    .filter(({ event }) => !firesHere(event))
    .map(({ event, source }) => `${event} of ${source.file} never fires here.`)
  return [
    ...problems.map(
      ({ source, where, message }) => `${source.file}${where === '' ? '' : ` ${where}`}: ${message}. It is left out.`,
    ),
    ...untrusted.map(
      ({ path, status }) =>
        `${path} is ${status === 'changed' ? 'not what was trusted' : 'not trusted'}: its hooks do not run. Look at them with: hookloop trust`,
    ),
    ...new Set(never),
  ]
}

export function firesHere(event: ClaudeEvent): boolean {
  return 'trigger' in claudeEvents[event]
}
