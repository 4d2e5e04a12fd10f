import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { homeFolder } from '../../system/files/user-folders.ts'
import { checkOptions, invalidOption } from '../../values/check-options.ts'
import { messageOf } from '../../errors.ts'
import { once } from '../../system/once.ts'
import { runLater } from '../../system/files/run-later.ts'
import { executableProblem } from '../../system/processes/executable-problem.ts'

/** What a command may do in the sandbox. Relative paths are relative to `cwd`, and `~` is the home folder. */
export type SandboxOptions = {
  /** Throw if there is no sandbox. Default false: commands run without one. */
  readonly required?: boolean
  /** Where it may write, in addition to `cwd` and a temporary folder. Default none. */
  readonly write?: readonly string[]
  /** What it may not read. Default: the usual places of keys in the home folder. */
  readonly hide?: readonly string[]
  /** Whether it may use the network. Default false. */
  readonly network?: boolean
}

/**
 * `auto`: a sandbox if this machine has one. `required`: throw if it has none. `off` or `false`: no sandbox. Or the options
 * of a sandbox.
 */
export type SandboxChoice = 'auto' | 'required' | 'off' | false | SandboxOptions

/** The sandbox, or the reason why there is none. */
export type Sandbox = ActiveSandbox | { readonly active: false; readonly why: string }

type ActiveSandbox = {
  readonly active: true
  readonly write: readonly string[]
  readonly hide: readonly string[]
  readonly network: boolean
}

type WrappedCommand = {
  readonly command: string
  readonly env: Readonly<Record<string, string>>
  /** Call it when the command has ended. */
  readonly cleanUp: () => void
}

const LIBRARY = '@anthropic-ai/sandbox-runtime'

const hiddenByDefault =
  '~/.ssh ~/.gnupg ~/.aws ~/.azure ~/.config/gcloud ~/.config/gh ~/.docker ~/.kube ~/.netrc ~/.npmrc ~/.pypirc ' +
  '~/.git-credentials ~/.bash_history ~/.zsh_history'

/**
 * Paths that are not writable although inside `cwd`: they decide what runs later, outside of the sandbox. A missing one is
 * replaced by an empty file, except where yarn, pnpm or lint-staged would use that file.
 */
function readOnlyPaths(cwd: string): readonly string[] {
  const ifPresent = ['.yarn/releases', '.yarn/plugins', '.pnpmfile.cjs', '.pnpmfile.mjs', '.lintstagedrc']
  const present = ifPresent.filter((path) => existsSync(join(cwd, path)))
  return ['.git/hooks', '.git/config', ...runLater, ...present].map((path) => join(cwd, path))
}

/** Chooses the sandbox for this machine. Throws if one is required and not available. */
export function chooseSandbox(choice: SandboxChoice, cwd: string): Sandbox {
  const options = toOptions(choice)
  if (options === undefined) return { active: false, why: 'It is turned off.' }
  const missing = missingForSandbox()
  if (missing !== undefined) {
    if (options.required === true)
      throw invalidOption('bash', `a sandbox is required, and there is none: ${missing}`, choice)
    return { active: false, why: `${missing}.` }
  }
  return {
    active: true,
    write: [cwd, ...(options.write ?? []).map((path) => toPath(path, cwd))],
    hide: (options.hide ?? hiddenByDefault.split(' ')).map((path) => toPath(path, cwd)),
    network: options.network ?? false,
  }
}

/** The sandbox as text, for the model and the description of the agent. */
export function describeSandbox(sandbox: Sandbox): string {
  if (!sandbox.active) return `There is no sandbox: a command can do everything that this user can. ${sandbox.why}`
  const { write, hide, network } = sandbox
  const places = `They can write only to ${write.join(', ')} and a temporary folder`
  return `Commands run in a sandbox. ${places}, cannot read ${hide.length} places with keys, and have ${network ? 'network access' : 'no network access'}.`
}

/** The command line that runs a command in the sandbox. Throws on any problem: the command never runs outside instead. */
export async function wrapCommand(
  command: string,
  { sandbox, cwd, signal }: { readonly sandbox: ActiveSandbox; readonly cwd: string; readonly signal: AbortSignal },
): Promise<WrappedCommand> {
  const { SandboxManager, getDefaultWritePaths } = (await import(
    LIBRARY
  )) as typeof import('@anthropic-ai/sandbox-runtime')
  const temporary = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-sandbox-')))
  const removeTemporary = (): void => rmSync(temporary, { recursive: true, force: true })
  const defaults = getDefaultWritePaths().filter((path) => !path.startsWith('/dev/'))
  const filesystem = {
    allowWrite: literal([...sandbox.write, temporary]),
    denyWrite: literal([...readOnlyPaths(cwd), ...defaults]),
    denyRead: literal(sandbox.hide),
  }
  // Without a list of domains the network is not restricted, and with an empty one there is none.
  const network = sandbox.network ? {} : { network: { allowedDomains: [], deniedDomains: [] } }
  try {
    const wrapped = await SandboxManager.wrapWithSandbox(command, 'bash', { filesystem, ...network }, signal)
    return {
      command: wrapped,
      env: { TMPDIR: temporary },
      cleanUp: () => {
        SandboxManager.cleanupAfterCommand()
        removeTemporary()
      },
    }
  } catch (thrown) {
    removeTemporary()
    throw new Error(`The command was not run, because the sandbox could not be set up: ${messageOf(thrown)}`, {
      cause: thrown,
    })
  }
}

function toOptions(choice: SandboxChoice): SandboxOptions | undefined {
  if (choice === 'off' || choice === false) return undefined
  if (choice === 'auto') return {}
  if (choice === 'required') return { required: true }
  checkOptions('bash: sandbox', choice, ['required', 'write', 'hide', 'network'])
  if (typeof (choice.network ?? false) !== 'boolean')
    throw invalidOption('bash: sandbox', '"network" must be true or false', choice.network)
  return choice
}

/** Marked as literal, so that a `*` in a name is not a pattern. */
function literal(paths: readonly string[]): { path: string; literal: true }[] {
  return paths.map((path) => ({ path, literal: true }))
}

function toPath(path: string, cwd: string): string {
  if (path === '~' || path.startsWith('~/')) return join(homeFolder(), path.slice(1))
  return resolve(cwd, path)
}

const missingForSandbox = once((): string | undefined => {
  if (process.platform !== 'linux' && process.platform !== 'darwin')
    return `this platform is not supported (${process.platform})`
  if (!isInstalled()) return `the package ${LIBRARY} is not installed`
  if (process.platform === 'darwin') return undefined
  const place = { cwd: '/', path: process.env['PATH'] }
  const programs = ['bwrap', 'socat', 'rg'].filter((program) => executableProblem(program, place) !== undefined)
  if (programs.length > 0)
    return `this machine has no ${programs.join(', no ')} (bubblewrap, socat and ripgrep are needed)`
  const args = ['--ro-bind', '/', '/', '--unshare-user', '--unshare-pid', '--unshare-net', '--proc', '/proc', 'true']
  const { status, stderr } = spawnSync('bwrap', args, { encoding: 'utf8', timeout: 10_000 })
  return status === 0 ? undefined : `bubblewrap does not work on this machine: ${(stderr ?? '').trim()}`
})

function isInstalled(): boolean {
  try {
    import.meta.resolve(LIBRARY)
    return true
  } catch {
    return false
  }
}
