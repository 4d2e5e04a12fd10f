import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { AskModel } from '../../hook-files/claude/run/ask-model.ts'
import { claudeEventNames, eventSpec, type ClaudeEvent } from '../../hook-files/claude/events/claude-events.ts'
import { describeProblem, readHandler, type HookGroup, type HookSource } from '../../hook-files/claude/load/handlers.ts'
import { mergeAnswers } from '../../hook-files/claude/answer/merge-answers.ts'
import type { Payload } from '../../hook-files/claude/events/common-payload.ts'
import { HookTable, runEvent, type RanHandler } from '../../hook-files/claude/run/run-event.ts'
import { readSettings } from '../../hook-files/claude/load/read-settings.ts'
import { findEvent, examplePayload } from '../../hook-files/claude/events/example-payload.ts'
import { trustedGroups } from '../../hook-files/claude/load/trusted-groups.ts'
import type { FileHook } from '../../hook-files/files/hook-file.ts'
import { findHooks, leftOutNote } from '../../hook-files/files/project-hooks.ts'
import { uniqueByPath } from '../../hook-files/trust/fingerprint.ts'
import { TrustStore, type UntrustedFile } from '../../hook-files/trust/trust-store.ts'
import { isJsonObject, type JsonObject } from '../../values/json.ts'
import { nearestName } from '../../values/nearest-name.ts'
import { messageOf } from '../../errors.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { collect, jsonOption } from '../options.ts'
import { readPiped } from '../run/input.ts'
import { jsonText } from '../terminal/json.ts'
import { printable } from '../terminal/printable.ts'
import { UsageError } from '../usage-error.ts'
import { fireFileHooks } from '../hooks-test/fire-file-hooks.ts'
import { reportOf, reportText } from '../hooks-test/report.ts'
import { relativePath } from '../terminal/relative-paths.ts'
import { resolveDir, type HookPlace } from './dir-option.ts'

type HooksTestFlags = {
  readonly dir?: string
  readonly handler?: string
  readonly user: boolean
  /** Variables that hooks receive although they look like secrets. */
  readonly passEnv?: readonly string[]
  /** The model of handlers that call one. Default: HOOKLOOP_MODEL. */
  readonly model?: string
  readonly json?: boolean
}

export const command: CommandDefinition = {
  description:
    'Send one event, given as JSON on stdin, to the hooks in files, and print what they decide together. ' +
    'The hooks are really run.',
  examples: [
    `echo '{"tool_name":"Bash","tool_input":{"command":"rm -rf /"}}' | hookloop hooks test PreToolUse --dir . --json`,
    `echo '{"prompt":"hello"}' | hookloop hooks test UserPromptSubmit --handler 'python3 context.py'`,
  ],
  notes: `Missing fields of the event get defaults. Hooks run in the folder that the event names as "cwd" if it exists,
otherwise in --dir. Hooks of a skill need "skills": ["its name"] in the event, those of an agent "agent_type": "its name".`,
  configure: (command) =>
    jsonOption(command)
      .argument('<event>', 'such as PreToolUse')
      .option(
        '--dir <path>',
        'folder of a project or a plugin, whose hooks run even if untrusted (default: the current folder, trusted hooks only)',
      )
      .option('--handler <command>', 'run this command as the only hook, and read no settings')
      .option('--no-user', 'leave out the hooks in your own settings')
      .option('--pass-env <name>', 'pass a variable that looks like a secret to the hooks; can be repeated', collect)
      .option('-m, --model <name>', 'model for hooks that call one (default: HOOKLOOP_MODEL)'),
  run: hooksTest,
}

async function hooksTest(name: string, flags: HooksTestFlags, cli: CliContext): Promise<void> {
  const { skills, ...given } = parsed(await readPiped(cli))
  const event = findEvent(name, given)
  if (event === undefined) {
    const nearest = nearestName(name, claudeEventNames)
    const hint = nearest === undefined ? '' : ` Did you mean ${nearest}?`
    throw new UsageError(`Unknown event "${name}".${hint} Known: ${claudeEventNames.join(', ')}.`)
  }
  const location = resolveDir(flags.dir)
  const { dir } = location.settings
  const payload = examplePayload(given, event, dir)
  const tested =
    flags.handler === undefined
      ? projectHooks(flags, location, cli.command)
      : singleHandler(flags.handler, event, location)
  const { groups, rules, untrusted } = tested
  const where = foldersFor(payload, { location, flags })
  const environment = { env: cli.env, passEnv: flags.passEnv ?? [] }
  const background: Promise<RanHandler>[] = []
  const result = await runEvent(new HookTable(groups), payload, {
    context: { ...where, ...environment, ...rules, askModel: await modelFor(flags, cli, dir) },
    isActive: activeFor(payload, skills),
    onBackground: (late) => background.push(late),
  })
  const own = await fireFileHooks(tested.hooks, payload, skills)
  const answers = [...own, ...result.ran].map(({ answer }) => answer)
  const merged = own.length === 0 || result.problems.length > 0 ? result.merged : mergeAnswers(answers, event)
  const late = await Promise.all(background) // the report includes them
  const problems = [...tested.problems, ...result.problems]
  const outcome = { ...result, merged, own, late, problems }
  const isSilent = own.length + result.ran.length + late.length + problems.length === 0
  const notes = [...otherEvent(given, event), ...(isSilent ? [whyNoneRan(payload, groups)] : [])]
  for (const line of [...problems, ...notes]) cli.err.write(`${printable(line)}\n`)
  const report = { ...reportOf(outcome, event), ...(untrusted.length > 0 && { untrusted }) }
  cli.out.write(flags.json === true ? `${jsonText(report)}\n` : reportText(outcome, { event, ...cli }))
}

async function modelFor({ model }: HooksTestFlags, { env }: CliContext, dir: string): Promise<AskModel | undefined> {
  const name = model ?? env['HOOKLOOP_MODEL'] ?? ''
  if (name === '') return undefined
  const { askNamedModel } = await import('../hooks-test/ask-named-model.ts') // most hooks need none
  return askNamedModel(name, dir)
}

function parsed(text: string): JsonObject {
  if (text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text.replace(/^\uFEFF/, ''))
    if (isJsonObject(value)) return value
  } catch (error) {
    throw new UsageError(`The event on stdin is not valid JSON: ${messageOf(error)}`)
  }
  throw new UsageError('The event on stdin must be a JSON object.')
}

/** What is tested: handlers of Claude Code, and hooks in `.hookloop/`. */
type Tested = {
  readonly groups: readonly HookGroup[]
  readonly hooks: readonly FileHook[]
  /** What HTTP handlers may do. */
  readonly rules: object
  readonly problems: readonly string[]
  readonly untrusted: readonly UntrustedFile[]
}

/** The hook of `--handler`. With a plugin in `--dir`, it runs as a hook of that plugin. */
function singleHandler(command: string, event: ClaudeEvent, { plugin }: HookPlace): Tested {
  const handler = readHandler({ type: 'command', command }, event)
  if (typeof handler === 'string') throw new UsageError(`--handler: ${handler}`)
  const file = '--handler'
  const source: HookSource = plugin === undefined ? { kind: 'given', file } : { kind: 'plugin', file, root: plugin }
  const groups = [{ event, matcher: undefined, handlers: [handler], source }]
  return { groups, hooks: [], rules: {}, problems: [], untrusted: [] }
}

/** Naming a folder with `--dir` is a request to run its hooks. Otherwise only trusted hooks run. */
function projectHooks({ dir: wanted, user }: HooksTestFlags, { settings: places }: HookPlace, command: string): Tested {
  const { dir } = places
  const home = user ? {} : { home: false as const }
  const settings = readSettings({ ...places, ...home })
  const trust = wanted === undefined ? new TrustStore() : 'all'
  if (trust !== 'all') trust.checkOutside(dir)
  const { groups, ...claude } = trustedGroups(settings, { dir, trust })
  const own = fileHooksOf({ dir, trust, ...home })
  const untrusted = uniqueByPath([...claude.untrusted, ...own.untrusted])
  const { allowedHttpUrls, allowedHttpVariables } = settings
  const unread = settings.problems.map(describeProblem)
  const isEmpty = groups.length + own.hooks.length + unread.length === 0
  return {
    groups,
    hooks: own.hooks,
    rules: { allowedHttpUrls, allowedHttpVariables },
    untrusted,
    problems: [
      ...unread,
      ...(untrusted.length === 0 ? [] : [untrustedText(untrusted, { dir, command })]),
      ...own.problems,
      // without this, a wrong folder would look like one whose hooks decide nothing
      ...(isEmpty && wanted !== undefined ? [`No hooks found in ${dir}.`] : []),
    ],
  }
}

/** Hooks in `.hookloop/`, with the same rules for trust as those of Claude Code. */
function fileHooksOf(places: Parameters<typeof findHooks>[0]): Pick<Tested, 'hooks' | 'problems' | 'untrusted'> {
  try {
    const { hooks, mistakes, untrusted } = findHooks(places)
    return { hooks, problems: mistakes.map(leftOutNote), untrusted }
  } catch (error) {
    return { hooks: [], untrusted: [], problems: [messageOf(error)] }
  }
}

/** One line for all files: `--json` names each, and why. */
function untrustedText(files: readonly UntrustedFile[], { dir, command }: { dir: string; command: string }): string {
  const names = files.map(({ path }) => relativePath(path, dir)).join(', ')
  return `Not trusted as it is now: ${names}. The hooks that use it did not run. Review them with: ${command} trust. Or name the folder with --dir.`
}

/** The payload of another event. */
function otherEvent({ hook_event_name: said }: JsonObject, event: ClaudeEvent): readonly string[] {
  if (typeof said !== 'string' || findEvent(said, {}) === event) return []
  return [`The event says it is ${said}, but is tested as ${event}.`]
}

/** Why no hook ran although there are hooks. */
function whyNoneRan({ event, matched, input }: Payload, groups: readonly HookGroup[]): string {
  const here = groups.filter((group) => group.event === event)
  const events = [...new Set(groups.map((group) => group.event))].join(', ')
  if (here.length === 0) return `No hook handles ${event}${events === '' ? '' : `, only ${events}`}.`
  const inactive = here.filter(({ source }) => source.kind === 'skill' || source.kind === 'agent')
  if (inactive.length > 0) {
    const files = [...new Set(inactive.map(({ source }) => source.file))].join(', ')
    return `The hooks of ${files} are not active: name the skill in "skills", or the agent as "agent_type".`
  }
  const field = eventSpec(event).matches ?? ''
  if (typeof input[field] !== 'string') return `The event has no "${field}", which selects the hooks of ${event}.`
  const hasRules = here.some(({ handlers }) => handlers.some((handler) => handler.if !== undefined))
  return `No ${event} hook matches ${hasRules ? 'this call of ' : ''}${matched[0]}.`
}

/** Hooks run in the folder that the event names, unless it does not exist here: the event may be of another machine. */
function foldersFor(
  { input }: Payload,
  { location, flags }: { readonly location: HookPlace; readonly flags: HooksTestFlags },
): { readonly projectDir: string; readonly cwd: string } {
  const { dir } = location.settings
  const named = resolve(dir, typeof input['cwd'] === 'string' ? input['cwd'] : '.')
  const cwd = statSync(named, { throwIfNoEntry: false })?.isDirectory() === true ? named : dir
  const isProject = flags.dir === undefined ? flags.handler === undefined : location.isProject
  return { projectDir: isProject ? dir : cwd, cwd }
}

/** Hooks of an agent run if the event is about it, and those of a skill if `skills` names it. */
function activeFor({ input }: Payload, skills: unknown): (source: HookSource) => boolean {
  const loaded: readonly unknown[] = Array.isArray(skills) ? skills : []
  return ({ kind, name }) => {
    if (kind === 'skill') return loaded.includes(name)
    return kind !== 'agent' || (name !== undefined && name === input['agent_type'])
  }
}
