import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isInjectionVariable, minimalEnvironment } from '../../../system/processes/minimal-environment.ts'
import { TAG_VARIABLE } from '../../../system/processes/process-tag.ts'
import { runProcess } from '../../../system/processes/run-process.ts'
import { shellFor } from './hook-environment.ts'

const events: ReadonlySet<string> = new Set(['SessionStart', 'Setup', 'CwdChanged', 'FileChanged'])

const MAX_BYTES = 1_000_000
const TIMEOUT_MS = 5_000

export function hasEnvFile(event: string): boolean {
  return events.has(event)
}

/** A file of its own for a hook that may write `export` lines for the commands that come after it. */
export class EnvFile {
  readonly #folder = mkdtempSync(join(tmpdir(), 'hookloop-env-'))
  readonly path = join(this.#folder, 'env.sh')

  constructor() {
    writeFileSync(this.path, '', { mode: 0o600 })
  }

  /** The variables that its lines set, as a shell reads them, or why there is no saying what they would be. */
  async read(cwd: string): Promise<Exported> {
    const size = this.#size()
    if (size === 0) return {}
    if (size === undefined) return unread('it is no file any more')
    if (size > MAX_BYTES) return unread('it is too long')
    const before = minimalEnvironment({}, { cwd })
    const { ended, exitCode, stdout } = await runProcess(
      // by its path, because the lines may have changed where programs are looked for
      { shell: shellFor(cwd, before['PATH']), line: '. "$HOOKLOOP_ENV_FILE" > /dev/null 2>&1; exec /usr/bin/env -0' },
      {
        cwd,
        env: { ...before, HOOKLOOP_ENV_FILE: this.path },
        timeoutMs: TIMEOUT_MS,
        output: { head: MAX_BYTES, tail: 0 },
      },
    )
    if (ended === 'timedOut') return unread('its lines do not come to an end')
    if (exitCode !== 0 || stdout.head === '') return unread('its lines end the shell that reads them')
    if (stdout.droppedBytes > 0) return unread('what it exports is too long')
    const variables = stdout.head.split('\0').flatMap((line) => changed(line, before))
    return variables.length === 0 ? {} : { variables: Object.fromEntries(variables) }
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** Of a file, or of one that the hook has taken away. It is not opened: to open a pipe is to wait for who writes. */
  #size(): number | undefined {
    try {
      const stat = statSync(this.path, { throwIfNoEntry: false })
      return stat === undefined ? 0 : stat.isFile() ? stat.size : undefined
    } catch {
      return undefined // such as a link to itself
    }
  }
}

/** What a hook has exported, and why that is nothing where it should have been something. */
export type Exported = { readonly variables?: Readonly<Record<string, string>>; readonly problem?: string }

function unread(why: string): Exported {
  return { problem: `what it wrote to CLAUDE_ENV_FILE has no effect: ${why}` }
}

/** What a shell sets by itself, and what is ours. */
const own: ReadonlySet<string> = new Set(['_', 'PWD', 'OLDPWD', 'SHLVL', 'HOOKLOOP_ENV_FILE', TAG_VARIABLE])

function changed(line: string, before: Readonly<Record<string, string>>): readonly (readonly [string, string])[] {
  const at = line.indexOf('=')
  const [name, value] = [line.slice(0, at), line.slice(at + 1)]
  if (!/^[A-Za-z_]\w*$/.test(name) || own.has(name) || isInjectionVariable(name) || before[name] === value) return []
  return [[name, value]]
}
