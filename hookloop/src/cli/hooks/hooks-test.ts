import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { claudeEventNames, eventSpec, type ClaudeEvent } from '../../config/claude/events.ts'
import { readHandler, type HookGroup, type HookSource } from '../../config/claude/handlers.ts'
import type { Payload } from '../../config/claude/payload.ts'
import { HookTable, runEvent, type EventResult, type RanHandler } from '../../config/claude/run-event.ts'
import { readSettings } from '../../config/claude/settings.ts'
import { eventNamed, payloadFrom } from '../../config/claude/test-event.ts'
import { trustedGroups } from '../../config/claude/trusted-groups.ts'
import { merge } from '../../config/claude/merge.ts'
import type { FileHook } from '../../config/hook-file.ts'
import { findHooks } from '../../config/project-hooks.ts'
import { TrustStore } from '../../config/trust.ts'
import { isJsonObject, type JsonObject } from '../../data/json.ts'
import { messageOf } from '../../errors.ts'
import { colorsFor } from '../terminal/colors.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { fireFileHooks, type FiredHook } from './fire-file-hooks.ts'
import { readPiped } from '../runs/input.ts'
import { jsonText } from '../terminal/json-lines.ts'
import type { Place } from '../place.ts'
import { oneLine, printable } from '../terminal/printable.ts'
import { UsageError } from '../usage-error.ts'

export type HooksTestFlags = {
  readonly dir?: string
  readonly handler?: string
  readonly user: boolean
  readonly json?: boolean
}

/** `hookloop hooks test`: one event as it is written on stdin, and what the hooks say to it. */
export async function hooksTest(name: string, flags: HooksTestFlags, place: Place): Promise<ExitCode> {
  const { skills, ...given } = parsed(await readPiped(place))
  const event = eventNamed(name, given)
  if (event === undefined) throw new UsageError(`There is no event "${name}". Known: ${claudeEventNames.join(', ')}.`)
  const dir = resolve(flags.dir ?? '.')
  const payload = payloadFrom(given, event, dir)
  const { groups, world: rules } =
    flags.handler === undefined ? projectOf(flags, dir, place) : lone(flags.handler, event)
  const cwd = folderOf(payload, dir, flags.handler)
  const world = { projectDir: dir, cwd, env: place.env, passEnv: [], ...rules }
  const beside: Promise<RanHandler>[] = []
  const result = await runEvent(new HookTable(groups), payload, {
    world,
    isActive: activeFor(payload, skills),
    isBeside: (late) => beside.push(late),
  })
  const own = flags.handler === undefined ? await fireFileHooks(fileHooksOf(flags, dir, place), payload, skills) : []
  const answers = [...own, ...result.ran].map(({ answer }) => answer)
  const merged = own.length === 0 || result.problems.length > 0 ? result.merged : merge(answers, event)
  const whole = { ...result, merged, own, late: await Promise.all(beside) } // those beside are waited for: somebody wants to see them
  for (const problem of result.problems) place.err.write(`${printable(problem)}\n`)
  place.out.write(flags.json === true ? `${jsonText(reportOf(whole, event))}\n` : wordsOf(whole, place))
  return exitCodes.completed
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

type Tested = { readonly groups: readonly HookGroup[]; readonly world: object }

function lone(command: string, event: ClaudeEvent): Tested {
  const handler = readHandler({ type: 'command', command }, event)
  if (typeof handler === 'string') throw new UsageError(`--handler: ${handler}`)
  const source: HookSource = { kind: 'given', file: '--handler' }
  return { groups: [{ event, matcher: undefined, handlers: [handler], source }], world: {} }
}

/** Who names a folder has asked for its hooks to be run; otherwise only what is trusted is. */
function projectOf({ dir: named, user }: HooksTestFlags, dir: string, place: Place): Tested {
  const settings = readSettings({ dir, ...(!user && { home: false }) })
  for (const { source, where, message } of settings.problems) {
    place.err.write(`${printable(source.file)} ${printable(where)}: ${printable(message)}\n`)
  }
  const trust = named === undefined ? new TrustStore() : 'all'
  if (trust !== 'all') trust.checkOutside(dir)
  const { groups, untrusted } = trustedGroups(settings, { dir, trust })
  for (const { path, status } of untrusted) {
    const how = status === 'changed' ? 'not what was trusted' : 'not trusted'
    place.err.write(`${printable(path)} is ${how}, so its hooks are not run. Name its folder with --dir to run them.\n`)
  }
  const { allowedHttpUrls, allowedHttpVariables } = settings
  return { groups, world: { allowedHttpUrls, allowedHttpVariables } }
}

/** A payload from elsewhere may name a folder that is not on this machine, and who types a command means a file that is here. */
function folderOf({ input }: Payload, dir: string, typed = ''): string {
  const { cwd } = input
  if (typeof cwd !== 'string' || statSync(cwd, { throwIfNoEntry: false })?.isDirectory() !== true) return dir
  const names = typed.match(/[^\s"']+/g) ?? []
  const isHere = names.some((name) => existsSync(resolve(dir, name)) && !existsSync(resolve(cwd, name)))
  return isHere ? dir : cwd
}

/** Hooks of an agent run if the payload is about it; those of a skill if `skills` names it. */
function activeFor({ input }: Payload, skills: unknown): (source: HookSource) => boolean {
  const loaded: readonly unknown[] = Array.isArray(skills) ? skills : []
  return ({ kind, name }) => {
    if (kind === 'skill') return loaded.includes(name)
    return kind !== 'agent' || (name !== undefined && name === input['agent_type'])
  }
}

type Whole = EventResult & { readonly late: readonly RanHandler[]; readonly own: readonly FiredHook[] }

/** Every field is always there: null is one that nobody has said anything about. */
function reportOf({ merged, ran, problems, late, own }: Whole, event: ClaudeEvent): object {
  const isDecided = !['context', 'none'].includes(merged.decision)
  return {
    decision: merged.decision,
    reason: isDecided ? merged.reason : null,
    updatedInput: merged.updatedInput ?? null,
    updatedOutput: merged.updatedOutput ?? null,
    additionalContext: merged.additionalContext ?? null,
    systemMessage: merged.systemMessage ?? null,
    ...(merged.other !== undefined && { other: merged.other }),
    hooks: [
      ...own.map((each) => ownReport(each, event)),
      ...ran.map((each) => hookReport(each, event)),
      ...late.map((each) => besideReport(each, event)),
    ],
    ...(problems.length > 0 && { problems }),
  }
}

/** A hook of our own file: what it is called, what it runs, and what it said. */
function ownReport({ hook: { hook, source, line }, answer, durationMs }: FiredHook, event: ClaudeEvent): object {
  const { decision, reason } = merge([answer], event)
  const { name, mode, action } = hook
  return {
    type: action?.kind ?? 'hook',
    name,
    mode: mode === 'transform' ? 'hook' : mode,
    source: `${source.file}:${line}`,
    decision,
    reason: ['context', 'none'].includes(decision) ? null : reason,
    ...(answer.problem !== undefined && { problem: answer.problem }),
    durationMs: Math.round(durationMs),
  }
}

/** Hooks of `.hookloop/`, under the same trust as those of Claude Code. */
function fileHooksOf({ dir: named, user }: HooksTestFlags, dir: string, place: Place): readonly FileHook[] {
  try {
    const trust = named === undefined ? new TrustStore() : 'all'
    return findHooks({ dir, trust, ...(!user && { home: false }) }).hooks
  } catch (error) {
    place.err.write(`${printable(messageOf(error))}\n`)
    return []
  }
}

function besideReport(each: RanHandler, event: ClaudeEvent): object {
  return { ...hookReport(each, event), decision: 'none', reason: null, async: true }
}

function hookReport({ handler, source, matcher, answer, durationMs }: RanHandler, event: ClaudeEvent): object {
  const { block, permission, request, stop, context } = answer
  const blocked = block && (eventSpec(event).block === 'denies' ? 'deny' : 'block')
  const own = blocked ?? permission?.decision ?? request?.behavior
  const decision = stop !== undefined ? 'stop' : (own ?? (context === undefined ? 'none' : 'context'))
  const why = stop?.reason ?? block?.reason ?? permission?.reason ?? requestReason(request)
  return {
    type: handler.type,
    ...(handler.type === 'command' && { command: [handler.command, ...(handler.args ?? [])].join(' ') }),
    ...(handler.type === 'http' && { url: handler.url }),
    matcher: matcher ?? null,
    source: source.file,
    decision,
    reason: why ?? null,
    exitCode: answer.exitCode ?? null,
    failed: answer.failed ?? null,
    problem: answer.problem ?? null,
    updatedInput: answer.updatedInput ?? (request?.behavior === 'allow' ? request.updatedInput : undefined) ?? null,
    updatedOutput: answer.updatedOutput ?? null,
    additionalContext: context ?? null,
    systemMessage: answer.systemMessage ?? null,
    durationMs: Math.round(durationMs),
  }
}

function requestReason(request: RanHandler['answer']['request']): string | undefined {
  return request === undefined ? undefined : request.behavior === 'deny' ? request.message : ''
}

function wordsOf({ merged, ran, late, own }: Whole, { out, env }: Place): string {
  const { bold, dim, red } = colorsFor(out, env)
  const lines = [
    `${bold(merged.decision)}${merged.reason === '' ? '' : `: ${printable(merged.reason)}`}`,
    ...(['updatedInput', 'updatedOutput', 'additionalContext', 'systemMessage', 'other'] as const).flatMap((name) =>
      merged[name] === undefined ? [] : [`${dim(name)} ${printable(jsonText(merged[name]))}`],
    ),
    ...[...own.map(named), ...[...ran, ...late].map(commanded)].map(({ what, answer, durationMs }) => {
      const problem = answer.problem === undefined ? '' : ` ${red(printable(answer.problem))}`
      return `  ${oneLine(what, 80)} ${dim(`${Math.round(durationMs)} ms`)}${problem}`
    }),
  ]
  return `${lines.join('\n')}\n`
}

type Shown = Pick<RanHandler, 'answer' | 'durationMs'> & { readonly what: string }

function named({ hook, answer, durationMs }: FiredHook): Shown {
  return { what: hook.hook.name, answer, durationMs }
}

function commanded({ handler, answer, durationMs }: RanHandler): Shown {
  return { what: handler.type === 'command' ? handler.command : handler.type, answer, durationMs }
}
