import { spawnSync } from 'node:child_process'
import { accessSync, constants, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { checkOptions, invalidOption } from '../../agent/check-options.ts'
import { messageOf } from '../../errors.ts'

/** What a command may do inside the sandbox. Paths that are not absolute are taken from `cwd`, and `~` is the home folder. */
export type SandboxOptions = {
  /** Refuse to build without a sandbox. Default false: without one, commands run without. */
  readonly required?: boolean
  /** Where it may write, beside `cwd` and a temporary folder of its own. */
  readonly write?: readonly string[]
  /** What it may not read. Default: the usual places of keys in the home folder. */
  readonly hide?: readonly string[]
  /** Whether it has the network. Default false. */
  readonly network?: boolean
}

export type SandboxChoice = 'auto' | 'required' | 'off' | SandboxOptions

/** The boundary around commands, or the reason why there is none. */
export type Sandbox = ActiveSandbox | { readonly active: false; readonly why: string }

type ActiveSandbox = {
  readonly active: true
  readonly write: readonly string[]
  readonly hide: readonly string[]
  readonly network: boolean
}

export type WrappedCommand = {
  readonly command: string
  readonly env: Readonly<Record<string, string>>
  /** To be called when the command has ended. */
  readonly cleanUp: () => void
}

const LIBRARY = '@anthropic-ai/sandbox-runtime'

const hidden = [
  '~/.ssh',
  '~/.gnupg',
  '~/.aws',
  '~/.azure',
  '~/.config/gcloud',
  '~/.config/gh',
  '~/.docker',
  '~/.kube',
  '~/.netrc',
  '~/.npmrc',
  '~/.pypirc',
  '~/.git-credentials',
  '~/.bash_history',
  '~/.zsh_history',
] as const

/** Inside `cwd`, and yet not to be written to: they decide what is run later, outside. */
const guarded = ['.git/hooks', '.git/config', '.hookloop', '.claude', '.vscode', '.idea'] as const

/** Finds out whether there can be a sandbox, and what it is. Throws if there must be one and cannot. */
export function chooseSandbox(choice: SandboxChoice, cwd: string): Sandbox {
  const options = toOptions(choice)
  if (options === undefined) return { active: false, why: 'It is switched off.' }
  const missing = whatIsMissing()
  if (missing !== undefined) {
    if (options.required === true)
      throw invalidOption('bash', `a sandbox is required, and there is none: ${missing}`, choice)
    return { active: false, why: `${missing}.` }
  }
  return {
    active: true,
    write: [cwd, ...(options.write ?? []).map((path) => toPath(path, cwd))],
    hide: (options.hide ?? hidden).map((path) => toPath(path, cwd)),
    network: options.network ?? false,
  }
}

/** The boundary in words, for the model, for people and for the description of the agent. */
export function describeSandbox(sandbox: Sandbox): string {
  if (!sandbox.active) return `There is no sandbox: a command may do whatever this user may. ${sandbox.why}`
  const { write, hide, network } = sandbox
  const places = `It can write to ${write.join(', ')} and a temporary folder, and nowhere else`
  return `Commands run in a sandbox. ${places}, cannot read ${hide.length} places that hold keys, and has ${network ? 'the network' : 'no network'}.`
}

/** A command inside the boundary. What goes wrong here is thrown: a command that should be inside is never run outside. */
export async function wrapCommand(
  command: string,
  { sandbox, cwd, signal }: { readonly sandbox: ActiveSandbox; readonly cwd: string; readonly signal: AbortSignal },
): Promise<WrappedCommand> {
  const { SandboxManager, getDefaultWritePaths } = await loadLibrary()
  const temporary = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-sandbox-')))
  const removeTemporary = (): void => rmSync(temporary, { recursive: true, force: true })
  const usual = getDefaultWritePaths().filter((path) => !path.startsWith('/dev/'))
  const filesystem = {
    allowWrite: literal([...sandbox.write, temporary]),
    denyWrite: literal([...guarded.map((path) => join(cwd, path)), ...usual]),
    denyRead: literal(sandbox.hide),
  }
  // Without a list of domains there is no restriction, and with an empty one there is no network at all.
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

const known = ['required', 'write', 'hide', 'network'] as const

function toOptions(choice: SandboxChoice): SandboxOptions | undefined {
  if (choice === 'off') return undefined
  if (choice === 'auto') return {}
  if (choice === 'required') return { required: true }
  if (typeof choice !== 'object' || choice === null)
    throw invalidOption('bash', `"sandbox" must be 'auto', 'required', 'off' or its options`, choice)
  checkOptions('bash: sandbox', choice, known)
  for (const name of ['required', 'network'] as const) {
    if (!['boolean', 'undefined'].includes(typeof choice[name]))
      throw invalidOption('bash: sandbox', `"${name}" must be true or false`, choice[name])
  }
  for (const name of ['write', 'hide'] as const) {
    const list: unknown = choice[name] ?? []
    if (!Array.isArray(list) || !list.every((path) => typeof path === 'string' && path !== ''))
      throw invalidOption('bash: sandbox', `"${name}" must be a list of paths`, list)
  }
  return choice
}

/** Marked so that a `*` in a name is a `*`. */
function literal(paths: readonly string[]): { path: string; literal: true }[] {
  return paths.map((path) => ({ path, literal: true }))
}

function toPath(path: string, cwd: string): string {
  if (path === '~' || path.startsWith('~/')) return join(homedir(), path.slice(1))
  return resolve(cwd, path)
}

let found: { readonly missing: string | undefined } | undefined

/** Looked for once: what a machine has does not change while a program runs. */
function whatIsMissing(): string | undefined {
  found ??= { missing: lookForSandbox() }
  return found.missing
}

function lookForSandbox(): string | undefined {
  if (process.platform !== 'linux' && process.platform !== 'darwin')
    return `this platform has none (${process.platform})`
  if (!isInstalled()) return `the package ${LIBRARY} is not installed`
  if (process.platform === 'darwin') return undefined
  const programs = ['bwrap', 'socat', 'rg'].filter((program) => !isOnPath(program))
  if (programs.length > 0)
    return `this machine has no ${programs.join(', no ')} (bubblewrap, socat and ripgrep are needed)`
  const args = ['--ro-bind', '/', '/', '--unshare-user', '--unshare-pid', '--unshare-net', '--proc', '/proc', 'true']
  const { status, stderr } = spawnSync('bwrap', args, { encoding: 'utf8', timeout: 10_000 })
  return status === 0 ? undefined : `bubblewrap does not work on this machine: ${(stderr ?? '').trim()}`
}

function isInstalled(): boolean {
  try {
    import.meta.resolve(LIBRARY)
    return true
  } catch {
    return false
  }
}

function loadLibrary(): Promise<typeof import('@anthropic-ai/sandbox-runtime')> {
  return import(LIBRARY) as Promise<typeof import('@anthropic-ai/sandbox-runtime')>
}

function isOnPath(program: string): boolean {
  return (process.env['PATH'] ?? '').split(':').some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
