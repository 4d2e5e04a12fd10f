import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isInjectionVariable, minimalEnvironment } from '../../../system/processes/minimal-environment.ts'
import { runProcess } from '../../../system/processes/run-process.ts'
import { shellFor } from './hook-environment.ts'

export const eventsWithEnvFile: ReadonlySet<string> = new Set(['SessionStart', 'Setup', 'CwdChanged', 'FileChanged'])

const MAX_BYTES = 1_000_000
const TIMEOUT_MS = 5_000

/** A file to which a hook can write `export` lines for later commands. */
export class EnvFile {
  readonly #folder = mkdtempSync(join(tmpdir(), 'hookloop-env-'))
  readonly path = join(this.#folder, 'env.sh')

  constructor() {
    writeFileSync(this.path, '', { mode: 0o600 })
  }

  /** The variables that its lines set when a shell reads them, or why they cannot be read. */
  async read(cwd: string): Promise<Exported> {
    const size = this.#size()
    if (size === 0) return {}
    if (size === undefined) return unread('it is not a file any more')
    if (size > MAX_BYTES) return unread('it is too large')
    const before = minimalEnvironment({}, { cwd })
    const { ended, exitCode, stdout } = await runProcess(
      // by its path, because the lines may have changed PATH
      { shell: shellFor(cwd, before['PATH']), line: '. "$HOOKLOOP_ENV_FILE" > /dev/null 2>&1; exec /usr/bin/env -0' },
      {
        cwd,
        env: { ...before, HOOKLOOP_ENV_FILE: this.path },
        timeoutMs: TIMEOUT_MS,
        output: { head: MAX_BYTES, tail: 0 },
      },
    )
    if (ended === 'timedOut') return unread('its lines do not end')
    if (exitCode !== 0 || stdout.head === '') return unread('its lines end the shell')
    if (stdout.droppedBytes > 0) return unread('it exports too much')
    const variables = stdout.head.split('\0').flatMap((line) => changed(line, before))
    return variables.length === 0 ? {} : { variables: Object.fromEntries(variables) }
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** Undefined if it is not a file. It is not opened, because opening a named pipe would block. */
  #size(): number | undefined {
    try {
      const stat = statSync(this.path, { throwIfNoEntry: false })
      return stat === undefined ? 0 : stat.isFile() ? stat.size : undefined
    } catch {
      return undefined // for example a link to itself
    }
  }
}

/** The variables that a hook has exported, or why they cannot be used. */
export type Exported = { readonly variables?: Readonly<Record<string, string>>; readonly problem?: string }

function unread(why: string): Exported {
  return { problem: `CLAUDE_ENV_FILE is ignored: ${why}` }
}

/** Variables that the shell or the runtime sets. */
const own: ReadonlySet<string> = new Set(['_', 'PWD', 'OLDPWD', 'SHLVL', 'HOOKLOOP_ENV_FILE'])

function changed(line: string, before: Readonly<Record<string, string>>): readonly (readonly [string, string])[] {
  const at = line.indexOf('=')
  const [name, value] = [line.slice(0, at), line.slice(at + 1)]
  if (!/^[A-Za-z_]\w*$/.test(name) || own.has(name) || isInjectionVariable(name) || before[name] === value) return []
  return [[name, value]]
}
