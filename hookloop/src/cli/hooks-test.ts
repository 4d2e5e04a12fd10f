import { resolve } from 'node:path'
import { isClaudeEvent, claudeEventNames, type ClaudeEvent } from '../config/claude/events.ts'
import { readHandler, type HookGroup } from '../config/claude/handlers.ts'
import type { Merged } from '../config/claude/merge.ts'
import { HookTable, runEvent, type EventResult, type RanHandler } from '../config/claude/run-event.ts'
import { readSettings } from '../config/claude/settings.ts'
import { payloadFrom } from '../config/claude/test-event.ts'
import { trustedGroups } from '../config/claude/trusted-groups.ts'
import { TrustStore } from '../config/trust.ts'
import { isJsonObject, type JsonObject } from '../data/json.ts'
import { messageOf } from '../errors.ts'
import { colorsFor } from './colors.ts'
import { exitCodes, type ExitCode } from './exit-codes.ts'
import { readPiped } from './input.ts'
import { jsonText } from './json-lines.ts'
import type { Place } from './place.ts'
import { oneLine, printable } from './printable.ts'
import { UsageError } from './usage-error.ts'

export type HooksTestFlags = {
  readonly dir?: string
  readonly handler?: string
  readonly user: boolean
  readonly json?: boolean
}

/** `hookloop hooks test`: one event as it is written on stdin, and what the hooks say to it. */
export async function hooksTest(name: string, flags: HooksTestFlags, place: Place): Promise<ExitCode> {
  const event = eventNamed(name)
  const dir = resolve(flags.dir ?? '.')
  const payload = payloadFrom(parsed(await readPiped(place)), event, dir)
  const groups = flags.handler === undefined ? groupsOf(flags, dir, place) : [onlyGroup(flags.handler, event)]
  const cwd = typeof payload.input['cwd'] === 'string' ? payload.input['cwd'] : dir
  const world = { projectDir: dir, cwd, env: place.env, passEnv: [] }
  const result = await runEvent(new HookTable(groups), payload, { world })
  place.out.write(flags.json === true ? `${jsonText(reportOf(result))}\n` : wordsOf(result, place))
  return exitCodes.completed
}

function eventNamed(name: string): ClaudeEvent {
  if (isClaudeEvent(name)) return name
  throw new UsageError(`There is no event "${name}". Known: ${claudeEventNames.join(', ')}.`)
}

function parsed(text: string): JsonObject {
  if (text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    if (isJsonObject(value)) return value
  } catch (error) {
    throw new UsageError(`The event on stdin is not JSON: ${messageOf(error)}`)
  }
  throw new UsageError('The event on stdin must be a JSON object.')
}

function onlyGroup(command: string, event: ClaudeEvent): HookGroup {
  const handler = readHandler({ type: 'command', command }, event)
  if (typeof handler === 'string') throw new UsageError(`--handler: ${handler}`)
  return { event, matcher: undefined, handlers: [handler], source: { kind: 'given', file: '--handler' } }
}

/** Who names a folder has asked for its hooks to be run; otherwise only what is trusted is. */
function groupsOf({ dir: named, user }: HooksTestFlags, dir: string, place: Place): readonly HookGroup[] {
  const settings = readSettings({ dir, ...(!user && { home: false }) })
  for (const { source, where, message } of settings.problems) {
    place.err.write(`${printable(source.file)} ${printable(where)}: ${printable(message)}\n`)
  }
  const { groups, untrusted } = trustedGroups(settings, { dir, trust: named === undefined ? new TrustStore() : 'all' })
  for (const { path, status } of untrusted) {
    const how = status === 'changed' ? 'not what was trusted' : 'not trusted'
    place.err.write(`${printable(path)} is ${how}, so its hooks are not run. Name its folder with --dir to run them.\n`)
  }
  return groups
}

type Report = Omit<Merged, 'beside' | 'interrupt' | 'other'> & { readonly hooks: readonly object[] }

function reportOf({ merged, ran }: EventResult): Report {
  const { beside: _beside, interrupt: _interrupt, other: _other, ...rest } = merged
  return { ...rest, hooks: ran.map(hookReport) }
}

function hookReport({ handler, source, matcher, answer, durationMs }: RanHandler): object {
  const { block, permission, request, stop, ...said } = answer
  return {
    type: handler.type,
    command: handler.type === 'command' ? [handler.command, ...(handler.args ?? [])].join(' ') : undefined,
    url: handler.type === 'http' ? handler.url : undefined,
    matcher,
    source: source.file,
    decision: stop !== undefined ? 'stop' : (permission?.decision ?? request?.behavior ?? (block && 'block')),
    reason: stop?.reason ?? permission?.reason ?? block?.reason,
    ...said,
    durationMs: Math.round(durationMs),
  }
}

function wordsOf(result: EventResult, { out, env }: Place): string {
  const { bold, dim, red } = colorsFor(out, env)
  const { merged, ran } = result
  const lines = [
    `${bold(merged.decision)}${merged.reason === '' ? '' : `: ${printable(merged.reason)}`}`,
    ...(['updatedInput', 'updatedOutput', 'additionalContext', 'systemMessage'] as const).flatMap((name) =>
      merged[name] === undefined ? [] : [`${dim(name)} ${printable(jsonText(merged[name]))}`],
    ),
    ...ran.map(({ handler, answer, durationMs }) => {
      const what = handler.type === 'command' ? handler.command : handler.type
      const problem = answer.problem === undefined ? '' : ` ${red(printable(answer.problem))}`
      return `  ${oneLine(what, 80)} ${dim(`${Math.round(durationMs)} ms`)}${problem}`
    }),
  ]
  return `${lines.join('\n')}\n`
}
