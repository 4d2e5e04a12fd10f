import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { configFolder, homeFolder } from '../../system/files/user-folders.ts'
import type { ApprovalPolicy, Capability, UsePart } from '../../core/agent/capability.ts'
import type { Mcp } from '../../capabilities/mcp/mcp.ts'
import { defined } from '../../hook-files/defined.ts'
import type { CliContext } from '../cli-context.ts'
import { colorsFor } from '../terminal/colors.ts'
import { printable } from '../terminal/printable.ts'
import { relativePath, relativePaths } from '../terminal/relative-paths.ts'
import { UsageError } from '../usage-error.ts'

/** The options of the command line about hooks in files. */
export type HooksFlags = {
  /** False: the hooks of the project are ignored. The user's own hooks still apply. */
  readonly hooks?: boolean
  /** The hash of the project's files, as `hookloop trust` prints it: they are trusted for this run. */
  readonly trustProject?: string
  /** Setup hooks run first. */
  readonly init?: boolean
  readonly maintenance?: boolean
  readonly json?: boolean
}

/** Creates the capabilities with the hooks from files, for an agent with this approval and these capabilities. */
export type FileHooks = (agent: {
  readonly answer: ApprovalPolicy['answer'] | undefined
  readonly use: readonly UsePart[]
}) => readonly Capability[]

/**
 * The hooks in files that apply in the current folder. Untrusted hooks of the project are left out, with a warning. Hooks that
 * were trusted and have changed end the command: the guards among them would be missing.
 */
export async function fileHooks(flags: HooksFlags, cli: CliContext): Promise<FileHooks> {
  const { hooks, trustProject } = flags
  const setup = flags.init === true ? 'init' : flags.maintenance === true ? 'maintenance' : undefined
  const screen = flags.json === true ? undefined : terminalOf(cli)
  const dir = process.cwd()
  if (hooks !== false && trustProject === undefined) await warnAboutMissing(dir, cli)
  if (!hasFiles(dir) && trustProject === undefined) return () => [] // most folders have none: load nothing
  rejectInsideHook(process.env)
  const { claudeCommands } = await import('../../hook-files/claude/claude-commands.ts')
  const { claudeHooks } = await import('../../hook-files/claude/claude-hooks.ts')
  const { findHooks, projectHooks, leftOutNote } = await import('../../hook-files/files/project-hooks.ts')
  const { TrustStore } = await import('../../hook-files/trust/trust-store.ts')
  const { filesToTrust, untrustedFiles, settingsProblems } = await import('../../hook-files/list-hooks.ts')
  const { trustedByHash } = await import('../../hook-files/trust/trust-store.ts')
  if (hooks === false && trustProject !== undefined) {
    throw new UsageError('--no-hooks and --trust-project cannot be used together.')
  }
  const trust =
    hooks === false
      ? TrustStore.of([])
      : trustProject === undefined
        ? new TrustStore()
        : trustedByHash(filesToTrust(dir), { dir, hash: trustProject })
  if (trust === undefined) {
    throw new UsageError(
      `--trust-project: the hooks of this project have another hash. Review them with: ${cli.command} trust`,
    )
  }
  if (hooks !== false) reportUntrusted(untrustedFiles(dir, trust), { dir, cli })
  for (const problem of [...findHooks({ dir, trust }).mistakes.map(leftOutNote), ...settingsProblems(dir, trust)]) {
    warn(relativePaths(problem, dir), cli)
  }
  return ({ answer, use }) => {
    const mcp = mcpIn(use)
    const capabilities = [
      claudeCommands({ dir }),
      projectHooks({ dir, trust, untrusted: 'leaveOut' }),
      claudeHooks({
        dir,
        trust,
        ...defined({ answer, mcp, setup }),
        ...(screen !== undefined && { terminal: (sequence: string) => void screen.write(sequence) }),
      }),
    ]
    // Hooks that the user ignores are no problem.
    return hooks === false ? capabilities.map((each) => ({ ...each, warnings: [] })) : capabilities
  }
}

/** The stream that is a terminal which understands escape sequences. */
function terminalOf({ out, err, env }: CliContext): CliContext['err'] | undefined {
  return env['TERM'] === 'dumb' ? undefined : [err, out].find(({ isTTY }) => isTTY === true)
}

/** The MCP servers of an agent. */
function mcpIn(use: readonly UsePart[]): Mcp | undefined {
  return use.find((each): each is Mcp => each.name === 'mcp' && 'call' in each)
}

/** A hook that runs this command would be run by it again, without end. */
function rejectInsideHook({ HOOKLOOP_TRIGGER: trigger, CLAUDE_CODE_ENTRYPOINT: entry }: NodeJS.ProcessEnv): void {
  if (trigger === undefined && entry !== 'hookloop') return
  throw new UsageError(
    'This command was started by a hook, and its own hooks could start it again. If they cannot, unset HOOKLOOP_TRIGGER and CLAUDE_CODE_ENTRYPOINT first.',
  )
}

function hasFiles(dir: string): boolean {
  const folders = [dir, homeFolder()].flatMap((each) => [join(each, '.hookloop'), join(each, '.claude')])
  const own = ['json', 'jsonc', 'yaml', 'yml'].map((extension) => join(configFolder(), `hooks.${extension}`))
  return [...folders, ...own].some((path) => existsSync(path))
}

/** Without this warning, guards whose file was removed would be missing silently. */
async function warnAboutMissing(dir: string, cli: CliContext): Promise<void> {
  const { defaultTrustFile, TrustStore } = await import('../../hook-files/trust/trust-store.ts')
  if (!existsSync(defaultTrustFile())) return
  const missing = new TrustStore().missingFiles(dir).map((path) => relativePath(path, dir))
  if (missing.length === 0) return
  const fix = `If that is intended, run: ${cli.command} trust --revoke`
  warn(`Trusted hook files are missing: ${missing.join(', ')}. ${fix}`, cli)
}

type Untrusted = { readonly path: string; readonly status: 'changed' | 'untrusted' }

function reportUntrusted(files: readonly Untrusted[], { dir, cli }: { dir: string; cli: CliContext }): void {
  const names = (some: readonly Untrusted[]): string =>
    some.map(({ path }) => printable(relativePath(path, dir))).join(', ')
  const changed = files.filter(({ status }) => status === 'changed')
  if (changed.length > 0) {
    throw new UsageError(
      `${names(changed)} changed after it was trusted. ` +
        `Review it with: ${cli.command} trust. Or ignore the hooks of this project with --no-hooks.`,
    )
  }
  if (files.length === 0) return
  const review = `Review them with: ${cli.command} trust`
  warn(`The hooks of this project are not trusted and do not run: ${names(files)}. ${review}`, cli)
}

function warn(text: string, { err, env }: CliContext): void {
  err.write(`${colorsFor(err, env).yellow('!')} ${printable(text)}\n`)
}
