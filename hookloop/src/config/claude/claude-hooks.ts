import { devNull } from 'node:os'
import { resolve } from 'node:path'
import { checkKnown, invalidOption } from '../../agent/options.ts'
import type { Capability } from '../../agent/capability.ts'
import type { JsonObject } from '../../data/json.ts'
import { action } from '../../hooks/action.ts'
import { Context } from '../../hooks/draft.ts'
import { hook } from '../../hooks/hook.ts'
import type { HookOutcome } from '../../hooks/outcome.ts'
import type { PlainTrigger } from '../../hooks/triggers.ts'
import { TrustStore } from '../trust.ts'
import { claudeEvents, eventSpec, type ClaudeEvent } from './events.ts'
import type { HookGroup } from './handlers.ts'
import { payloadFor, permissionPayload, type Payload } from './payload.ts'
import { HookTable, runEvent, type EventResult } from './run-event.ts'
import type { HandlerWorld } from './run-handler.ts'
import { readSettings, type Settings } from './settings.ts'
import { trustedGroups, type Untrusted } from './trusted-groups.ts'
import { toHookOutcome } from './to-outcome.ts'

export type ClaudeHooksOptions = {
  /** The project: where `.claude/settings.json` is. */
  readonly dir: string
  /** Where the user's own `.claude` is; false: it is not read. */
  readonly home?: string | false
  /** Settings of an organisation, which nobody can turn off. */
  readonly managed?: string
  readonly plugins?: readonly string[]
  /** Settings as an object, beside those in files. */
  readonly settings?: JsonObject
  /** Who says which files of the project may run. `'all'`: whoever wrote this line has looked at them. */
  readonly trust?: TrustStore | 'all'
  /** Variables that scripts may see although they look like secrets. */
  readonly passEnv?: readonly string[]
}

/** After every hook of the agent's own that changes something: it judges what they made. */
const LAST = -1_000_000

/**
 * The hooks of a project that Claude Code would run, as one hook of ours: its handlers run together on the same input, and
 * what they answer is put together as its specification says.
 */
export function claudeHooks(options: ClaudeHooksOptions): Capability {
  checkKnown('claudeHooks', options, ['dir', 'home', 'managed', 'plugins', 'settings', 'trust', 'passEnv'])
  if (typeof options.dir !== 'string' || options.dir === '') {
    throw invalidOption('claudeHooks', '"dir" must be the folder of a project', options.dir)
  }
  const dir = resolve(options.dir)
  const settings = readSettings({ ...options, dir })
  const { groups, untrusted } = trustedGroups(settings, { dir, trust: options.trust ?? new TrustStore() })
  const table = new HookTable(groups)
  const world: HandlerWorld = {
    projectDir: dir,
    cwd: dir,
    env: process.env,
    passEnv: options.passEnv ?? [],
    allowedHttpUrls: settings.allowedHttpUrls,
    allowedHttpVariables: settings.allowedHttpVariables,
  }
  const triggers = triggersOf(table)
  return {
    name: 'claudeHooks',
    hooks: triggers.length === 0 ? [] : [hook(triggers, groupAction(table, world), { name: 'claude', priority: LAST })],
    notes: notesFor(settings, untrusted, groups),
  }
}

function triggersOf(table: HookTable): PlainTrigger[] {
  const found = table.events.map((event) => eventSpec(event).trigger).filter((trigger) => trigger !== undefined)
  return [...new Set(found)]
}

function groupAction(table: HookTable, world: HandlerWorld) {
  return action({
    kind: 'claude',
    label: 'claude',
    async perform(ctx, { signal }): Promise<HookOutcome> {
      const around = { cwd: world.cwd, transcriptPath: devNull }
      const payload = payloadFor(ctx, around)
      if (payload === undefined) return {}
      const here = { ...world, signal }
      const result = await runEvent(table, payload, { world: here })
      tell(ctx, result, payload)
      const asked = await answeredInstead(ctx, result, { table, world: here, around })
      return toHookOutcome(ctx, payload, asked.merged)
    },
  })
}

/** A question that hooks raise is put to those that answer questions, before a person hears of it. */
async function answeredInstead(
  ctx: Context,
  result: EventResult,
  { table, world, around }: { table: HookTable; world: HandlerWorld; around: { cwd: string; transcriptPath: string } },
): Promise<EventResult> {
  if (result.merged.decision !== 'ask' || !table.has('PermissionRequest')) return result
  const payload = permissionPayload(ctx, around)
  const answered = await runEvent(table, payload, { world })
  tell(ctx, answered, payload)
  const { merged } = answered
  if (merged.decision !== 'allow' && merged.decision !== 'deny') return result
  return {
    ...answered,
    merged: { ...result.merged, ...merged, ...(merged.interrupt === true && { decision: 'stop', beside: 'deny' }) },
  }
}

/** What is for the user, and what went wrong without stopping anything. */
function tell(ctx: Context, { merged, ran, problems }: EventResult, { event }: Payload): void {
  const { emit } = Context.hostOf(ctx).effects
  if (emit === undefined) return
  const { step } = Context.hostOf(ctx)
  const words = [
    ...(merged.systemMessage === undefined ? [] : [merged.systemMessage]),
    ...problems,
    ...ran.flatMap(({ answer }) => (answer.problem === undefined ? [] : [`${event} hook: ${answer.problem}`])),
  ]
  for (const message of words) emit({ type: 'warning', step, message })
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
