import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, relative } from 'node:path'
import type { ApprovalPolicy, Capability, Use } from '../../agent/capability.ts'
import type { ClaudeHooksOptions } from '../../hook-files/claude/claude-hooks.ts'
import type { Mcp } from '../../capabilities/mcp/mcp.ts'
import { colorsFor } from '../terminal/colors.ts'
import type { Place } from '../cli-context.ts'
import { printable } from '../terminal/printable.ts'
import { UsageError } from '../usage-error.ts'
import { nearer } from '../terminal/relative-paths.ts'

/** What the command line says about hooks in files. */
export type HooksFlags = {
  /** False: those of the project are left out. The user's own stay. */
  readonly hooks?: boolean
  /** The hash of the project's files, as `hookloop trust` shows it: trusted for this run. */
  readonly trustProject?: string
  /** Setup hooks run first. */
  readonly init?: boolean
  readonly maintenance?: boolean
  readonly json?: boolean
}

/** Who is told of what hooks do beside a run. */
export type ToldOfHooks = Pick<ClaudeHooksOptions, 'onWake' | 'onDisplay'>

/** Makes the hooks that files bring, for an agent whose questions are answered so and that uses these. */
export type HooksHere = (around: {
  readonly answer: ApprovalPolicy['answer'] | undefined
  readonly use: readonly Use[]
}) => readonly Capability[]

/**
 * The hooks in files that apply where the command is run. What the project brings and nobody has trusted is left out, and
 * that is said. What was trusted and has changed ends the command: guards that were there would be missing.
 */
export async function hooksHere(flags: HooksFlags, place: Place, told: ToldOfHooks = {}): Promise<HooksHere> {
  const { hooks, trustProject } = flags
  const setup = flags.init === true ? 'init' : flags.maintenance === true ? 'maintenance' : undefined
  const screen = flags.json === true ? undefined : terminalOf(place)
  const dir = process.cwd()
  if (hooks !== false && trustProject === undefined) await tellGone(dir, place)
  if (!hasFiles(dir) && trustProject === undefined) return () => [] // most folders have none, and need not wait for this
  refuseInHook(process.env)
  const { claudeCommands } = await import('../../hook-files/claude/claude-commands.ts')
  const { claudeHooks } = await import('../../hook-files/claude/claude-hooks.ts')
  const { findHooks, projectHooks, leftOutNote } = await import('../../hook-files/files/project-hooks.ts')
  const { TrustStore } = await import('../../hook-files/trust/trust-store.ts')
  const { filesToTrust, untrustedFiles, settingsProblems } = await import('../../hook-files/list-hooks.ts')
  const { trustedByHash } = await import('../../hook-files/trust/trusted-by-hash.ts')
  if (hooks === false && trustProject !== undefined)
    throw new UsageError('--no-hooks and --trust-project exclude each other.')
  const trust =
    hooks === false
      ? TrustStore.of([])
      : trustProject === undefined
        ? new TrustStore()
        : given(trustedByHash(filesToTrust(dir), { dir, hash: trustProject }), place)
  if (hooks !== false) tellDoubts(untrustedFiles(dir, trust), { dir, place })
  const mistakes = findHooks({ dir, trust }).mistakes.map(leftOutNote)
  tellMistakes([...mistakes, ...settingsProblems(dir, trust)], { dir, place })
  return ({ answer, use }) => {
    const mcp = serversIn(use)
    return [
      claudeCommands({ dir }),
      projectHooks({ dir, trust, untrusted: 'leaveOut' }),
      claudeHooks({
        dir,
        trust,
        ...(answer !== undefined && { answer }),
        ...(mcp !== undefined && { mcp }),
        ...(setup !== undefined && { setup }),
        ...told,
        ...(screen !== undefined && { terminal: (sequence: string) => void screen.write(sequence) }),
      }),
    ]
  }
}

/** Where somebody looks, on a terminal that knows more than text. */
function terminalOf({ out, err, env }: Place): Place['err'] | undefined {
  return env['TERM'] === 'dumb' ? undefined : [err, out].find(({ isTTY }) => isTTY === true)
}

/** The servers that an agent has connected, if it has. */
export function serversIn(use: readonly Use[]): Mcp | undefined {
  return use.find((each): each is Mcp => each.name === 'mcp' && 'call' in each)
}

/** A hook that runs this command would be run by it again, and so on without end. */
function refuseInHook({ HOOKLOOP_TRIGGER: trigger, CLAUDE_CODE_ENTRYPOINT: entry }: NodeJS.ProcessEnv): void {
  if (trigger === undefined && entry !== 'hookloop') return
  throw new UsageError(
    'A hook runs this command, and its hooks would run it again. If they would not, unset HOOKLOOP_TRIGGER and CLAUDE_CODE_ENTRYPOINT first.',
  )
}

function hasFiles(dir: string): boolean {
  const config = process.env['XDG_CONFIG_HOME'] ?? join(homedir(), '.config')
  const folders = [dir, homedir()].flatMap((each) => [join(each, '.hookloop'), join(each, '.claude')])
  const own = ['json', 'jsonc', 'yaml', 'yml'].map((ending) => join(config, 'hookloop', `hooks.${ending}`))
  return [...folders, ...own].some((path) => existsSync(path))
}

function given<T>(trust: T | undefined, { command }: Place): T {
  if (trust !== undefined) return trust
  throw new UsageError(
    `--trust-project: the hooks of this project have another hash. Look at them with: ${command} trust`,
  )
}

/** Nobody would notice guards that are missing because somebody has taken their file away. */
async function tellGone(dir: string, { err, env, command }: Place): Promise<void> {
  const { defaultTrustFile, TrustStore } = await import('../../hook-files/trust/trust-store.ts')
  if (!existsSync(defaultTrustFile())) return
  const gone = new TrustStore().missingFiles(dir).map((path) => printable(near(path, dir)))
  if (gone.length === 0) return
  const how = `If that is meant, say so with: ${command} trust --revoke`
  err.write(`${colorsFor(err, env).yellow('!')} Hooks that were trusted are gone: ${gone.join(', ')}. ${how}\n`)
}

type UntrustedFile = { readonly path: string; readonly status: 'changed' | 'untrusted' }

type Telling = { readonly dir: string; readonly place: Place }

function tellMistakes(mistakes: readonly string[], { dir, place: { err, env } }: Telling): void {
  const { yellow } = colorsFor(err, env)
  for (const words of mistakes) err.write(`${yellow('!')} ${printable(nearer(words, dir))}\n`)
}

function tellDoubts(doubts: readonly UntrustedFile[], { dir, place }: Telling): void {
  const named = (some: readonly UntrustedFile[]): string =>
    some.map(({ path }) => printable(near(path, dir))).join(', ')
  const changed = doubts.filter(({ status }) => status === 'changed')
  if (changed.length > 0) {
    throw new UsageError(
      `${named(changed)} changed after somebody had trusted it. ` +
        `Look at it with: ${place.command} trust. Or leave out the hooks of this project with --no-hooks.`,
    )
  }
  if (doubts.length === 0) return
  const { yellow } = colorsFor(place.err, place.env)
  place.err.write(
    `${yellow('!')} Hooks of this project are not trusted and do not run: ${named(doubts)}. Look at them with: ${place.command} trust\n`,
  )
}

function near(path: string, dir: string): string {
  const way = relative(dir, path)
  return way.startsWith('..') ? path : way
}
