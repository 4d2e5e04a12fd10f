import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { AskModel } from '../../hook-files/claude/run/ask-model.ts'
import { claudeEventNames, eventSpec, type ClaudeEvent } from '../../hook-files/claude/events/claude-events.ts'
import {
  readHandler,
  type ConfigProblem,
  type HookGroup,
  type HookSource,
} from '../../hook-files/claude/load/handlers.ts'
import { mergeAnswers } from '../../hook-files/claude/answer/merge-answers.ts'
import type { HookLocation } from '../../hook-files/claude/load/hook-location.ts'
import type { Payload } from '../../hook-files/claude/events/payload.ts'
import { HookTable, runEvent, type RanHandler } from '../../hook-files/claude/run/run-event.ts'
import { readSettings } from '../../hook-files/claude/load/read-settings.ts'
import { findEvent, examplePayload } from '../../hook-files/claude/events/example-payload.ts'
import { commandLineOf, trustedGroups, type Untrusted } from '../../hook-files/claude/load/trusted-groups.ts'
import type { FileHook } from '../../hook-files/files/hook-file.ts'
import { findHooks, uniqueByPath, leftOutNote } from '../../hook-files/files/project-hooks.ts'
import { TrustStore } from '../../hook-files/trust/trust-store.ts'
import { isJsonObject, type JsonObject } from '../../state/json.ts'
import { messageOf } from '../../errors.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import type { Place } from '../cli-context.ts'
import { readPiped } from '../run/input.ts'
import { count } from '../terminal/amounts.ts'
import { jsonText } from '../terminal/json-lines.ts'
import { printable } from '../terminal/printable.ts'
import { UsageError } from '../usage-error.ts'
import { fireFileHooks } from '../hooks-test/fire-file-hooks.ts'
import { reportOf, wordsOf } from '../hooks-test/report.ts'
import { missedVariables } from '../hooks-test/missing-variables.ts'
import { nearer } from '../terminal/relative-paths.ts'
import { placeOf } from './dir-option.ts'

export type HooksTestFlags = {
  readonly dir?: string
  readonly handler?: string
  readonly user: boolean
  /** Variables that hooks see although they look like secrets. */
  readonly passEnv?: readonly string[]
  /** What handlers ask that ask a model. `HOOKLOOP_MODEL` stands in for it. */
  readonly model?: string
  readonly json?: boolean
}

/** `hookloop hooks test`: one event as it is written on stdin, and what the hooks say to it. */
export async function hooksTest(name: string, flags: HooksTestFlags, place: Place): Promise<ExitCode> {
  const { skills, ...given } = parsed(await readPiped(place))
  const event = findEvent(name, given)
  if (event === undefined) throw new UsageError(`There is no event "${name}". Known: ${claudeEventNames.join(', ')}.`)
  const named = placeOf(flags.dir)
  const { dir } = named.settings
  const payload = examplePayload(given, event, dir)
  const tested = flags.handler === undefined ? projectOf(flags, named) : lone(flags.handler, event, named)
  const { groups, world: rules } = tested
  const where = foldersFor(payload, { named, groups, flags })
  const environment = { env: place.env, passEnv: flags.passEnv ?? [] }
  const beside: Promise<RanHandler>[] = []
  const result = await runEvent(new HookTable(groups), payload, {
    context: { ...where, ...environment, ...rules, askModel: await askerFor(flags, place, dir) },
    isActive: activeFor(payload, { skills, named }),
    isBeside: (late) => beside.push(late),
  })
  const files = flags.handler === undefined ? fileHooksOf(flags, named) : noFileHooks
  const own = await fireFileHooks(files.hooks, payload, skills)
  const answers = [...own, ...result.ran].map(({ answer }) => answer)
  const merged = own.length === 0 || result.problems.length > 0 ? result.merged : mergeAnswers(answers, event)
  const late = await Promise.all(beside) // they are waited for: somebody wants to see them
  const untrusted = uniqueByPath([...tested.untrusted, ...files.untrusted])
  const none = groups.length + files.hooks.length === 0 && tested.problems.length === 0 ? nothingIn(named, flags) : []
  const doubts = untrusted.length === 0 ? [] : [doubtWords(untrusted, { dir, command: place.command })]
  const problems = [...tested.problems, ...doubts, ...files.problems, ...result.problems, ...none]
  const whole = { ...result, merged, own, late, problems }
  const isSilent = own.length + result.ran.length + late.length + problems.length === 0
  const here = groups.filter((group) => group.event === event)
  const notes = [
    ...otherEvent(given, event),
    ...(isSilent ? [noneFor(payload, groups)] : []),
    ...missedVariables(here, { ...environment, dir }),
  ]
  for (const line of [...problems, ...notes]) place.err.write(`${printable(line)}\n`)
  const report = { ...reportOf(whole, event), ...(untrusted.length > 0 && { untrusted }) }
  place.out.write(flags.json === true ? `${jsonText(report)}\n` : wordsOf(whole, place))
  return exitCodes.completed
}

async function askerFor({ model }: HooksTestFlags, { env }: Place, dir: string): Promise<AskModel | undefined> {
  const name = model ?? env['HOOKLOOP_MODEL'] ?? ''
  if (name === '') return undefined
  const { askNamedModel } = await import('../hooks-test/ask-named-model.ts') // most hooks ask none
  return askNamedModel(name, dir)
}

function parsed(text: string): JsonObject {
  if (text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text.replace(/^\uFEFF/, ''))
    if (isJsonObject(value)) return value
  } catch (error) {
    throw new UsageError(`The event on stdin is not JSON: ${messageOf(error)}`)
  }
  throw new UsageError('The event on stdin must be a JSON object.')
}

type Tested = {
  readonly groups: readonly HookGroup[]
  readonly world: object
  readonly problems: readonly string[]
  readonly untrusted: readonly Untrusted[]
}

/** A command of a plugin finds what it would find as one of its hooks. */
function lone(command: string, event: ClaudeEvent, { plugin }: HookLocation): Tested {
  const handler = readHandler({ type: 'command', command }, event)
  if (typeof handler === 'string') throw new UsageError(`--handler: ${handler}`)
  const file = '--handler'
  const source: HookSource = plugin === undefined ? { kind: 'given', file } : { kind: 'plugin', file, root: plugin }
  return {
    groups: [{ event, matcher: undefined, handlers: [handler], source }],
    world: {},
    problems: [],
    untrusted: [],
  }
}

/** Who names a folder has asked for its hooks to be run; otherwise only what is trusted is. */
function projectOf({ dir: wanted, user }: HooksTestFlags, { settings: places, problem }: HookLocation): Tested {
  const settings = readSettings({ ...places, ...(!user && { home: false }) })
  const trust = wanted === undefined ? new TrustStore() : 'all'
  if (trust !== 'all') trust.checkOutside(places.dir)
  const { groups, untrusted } = trustedGroups(settings, { dir: places.dir, trust })
  const { allowedHttpUrls, allowedHttpVariables } = settings
  const problems = [...(problem === undefined ? [] : [problem]), ...problemsTogether(settings.problems)]
  return { groups, world: { allowedHttpUrls, allowedHttpVariables }, problems, untrusted }
}

/** One line, however many there are: the list has them by name, and so has `--json`. */
function doubtWords(doubts: readonly Untrusted[], { dir, command }: { dir: string; command: string }): string {
  const changed = doubts.filter(({ status }) => status === 'changed').length
  const [first] = doubts
  const which = doubts.length === 1 ? `${nearer(first!.path, dir)} is` : `${count(doubts.length, 'file')} are`
  const how =
    changed === 0
      ? 'not trusted'
      : changed === doubts.length
        ? 'not what was trusted'
        : 'not trusted, or not as they are'
  return `${which} ${how}, and the hooks that need ${doubts.length === 1 ? 'it' : 'them'} are not run. Look at them with: ${command} trust. Or name the folder with --dir.`
}

/** The same mistake is often made all through a file. */
function problemsTogether(problems: readonly ConfigProblem[]): readonly string[] {
  const places = Map.groupBy(problems, ({ source, message }) => JSON.stringify([source.file, message]))
  return [...places.values()].map((alike) => {
    const { source, message } = alike[0]!
    const [named, more] = [alike.slice(0, MAX_PLACES).map(({ where }) => where), alike.length - MAX_PLACES]
    const where = `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
    return `${source.file}${where && ` ${where}`}: ${message}`
  })
}

const MAX_PLACES = 3

/** Said where nothing was found: a folder that was meant to have hooks would look like one whose hooks have no opinion. */
function nothingIn({ settings: { dir } }: HookLocation, { dir: wanted }: HooksTestFlags): readonly string[] {
  return wanted === undefined ? [] : [`There are no hooks in ${dir}.`]
}

/** An event that was written down at another moment than the one it is tested as. */
function otherEvent({ hook_event_name: said }: JsonObject, event: ClaudeEvent): readonly string[] {
  if (typeof said !== 'string' || findEvent(said, {}) === event) return []
  return [`The event says that it is ${said}. It is tested as ${event}.`]
}

/** Why no hook has run, where there are some. */
function noneFor({ event, matched, input }: Payload, groups: readonly HookGroup[]): string {
  const here = groups.filter((group) => group.event === event)
  const events = [...new Set(groups.map((group) => group.event))].join(', ')
  if (here.length === 0) return `No hook is for ${event}${events === '' ? '' : `, only for ${events}`}.`
  const waiting = here.filter(({ source }) => source.kind === 'skill' || source.kind === 'agent')
  if (waiting.length > 0) {
    const files = [...new Set(waiting.map(({ source }) => source.file))].join(', ')
    return `The hooks of ${files} are not in force: name the skill in "skills", or the agent as "agent_type".`
  }
  const field = eventSpec(event).matches ?? ''
  if (typeof input[field] !== 'string') return `The event has no "${field}", by which the hooks of ${event} are chosen.`
  const hasRules = here.some(({ handlers }) => handlers.some((handler) => handler.if !== undefined))
  return `No hook of ${event} is for ${hasRules ? 'this call of ' : ''}${matched[0]}.`
}

type Folders = { readonly projectDir: string; readonly cwd: string }

/**
 * Where hooks run: the folder that the event names, unless the files that commands name are in the project, or where a
 * command was typed. An event from elsewhere may name a folder that is not on this machine, or not the one that is meant.
 */
function foldersFor(
  { event, input }: Payload,
  how: { readonly named: HookLocation; readonly groups: readonly HookGroup[]; readonly flags: HooksTestFlags },
): Folders {
  const { named, groups, flags } = how
  const { dir } = named.settings
  const there = resolve(dir, typeof input['cwd'] === 'string' ? input['cwd'] : '.')
  const typed = flags.handler === undefined ? [] : [resolve('.')]
  const lines = groups.filter((group) => group.event === event).flatMap(({ handlers }) => handlers.map(commandLineOf))
  const names = lines.flatMap((line) => line.replaceAll(/\$\{?CLAUDE_PROJECT_DIR\}?"?\//g, '').match(/[^\s"']+/g) ?? [])
  const found = (folder: string): number => names.filter((name) => existsSync(resolve(folder, name))).length
  const folders = [...(isFolder(there) ? [there] : []), dir, ...typed]
  const cwd = folders.reduce((best, each) => (found(each) > found(best) ? each : best))
  const isProject = flags.dir === undefined ? flags.handler === undefined : named.isProject
  return { projectDir: isProject || cwd !== there ? dir : there, cwd }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/** Hooks of an agent run if the payload is about it, those of a skill if `skills` names it, and either if its file is named. */
function activeFor(
  { input }: Payload,
  { skills, named }: { readonly skills: unknown; readonly named: HookLocation },
): (source: HookSource) => boolean {
  const loaded: readonly unknown[] = Array.isArray(skills) ? skills : []
  return ({ kind, name, file }) => {
    if (named.settings.files?.some((each) => each.file === file) === true) return true
    if (kind === 'skill') return loaded.includes(name)
    return kind !== 'agent' || (name !== undefined && name === input['agent_type'])
  }
}

type FileHooks = {
  readonly hooks: readonly FileHook[]
  readonly problems: readonly string[]
  readonly untrusted: readonly Untrusted[]
}

const noFileHooks: FileHooks = { hooks: [], problems: [], untrusted: [] }

/** Hooks of `.hookloop/`, under the same trust as those of Claude Code. */
function fileHooksOf({ dir: wanted, user }: HooksTestFlags, { settings: { dir, files } }: HookLocation): FileHooks {
  if (files !== undefined) return noFileHooks // one file was named, and not the folder
  try {
    const trust = wanted === undefined ? new TrustStore() : 'all'
    const { hooks, mistakes, untrusted } = findHooks({ dir, trust, ...(!user && { home: false }) })
    return { hooks, problems: mistakes.map(leftOutNote), untrusted }
  } catch (error) {
    return { ...noFileHooks, problems: [messageOf(error)] }
  }
}
