import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isHijacking, minimalEnvironment } from '../../machine/minimal-environment.ts'
import { TAG_VARIABLE } from '../../machine/process-tag.ts'
import { runProcess } from '../../machine/run-process.ts'
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

  /** The variables that its lines set, as a shell reads them. Undefined if there are none. */
  async read(cwd: string): Promise<Readonly<Record<string, string>> | undefined> {
    if (this.#isEmpty()) return undefined
    const before = minimalEnvironment({}, { cwd })
    const { ended, exitCode, stdout } = await runProcess(
      { shell: shellFor(cwd, before['PATH']), line: '. "$HOOKLOOP_ENV_FILE" > /dev/null 2>&1; exec env -0' },
      {
        cwd,
        env: { ...before, HOOKLOOP_ENV_FILE: this.path },
        timeoutMs: TIMEOUT_MS,
        output: { head: MAX_BYTES, tail: 0 },
      },
    )
    if (ended !== 'exited' || exitCode !== 0 || stdout.droppedBytes > 0) return undefined
    const variables = stdout.head.split('\0').flatMap((line) => changed(line, before))
    return variables.length === 0 ? undefined : Object.fromEntries(variables)
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #isEmpty(): boolean {
    try {
      return readFileSync(this.path, 'utf8').trim() === ''
    } catch {
      return true // the hook has taken it away
    }
  }
}

/** What a shell sets by itself, and what is ours. */
const own: ReadonlySet<string> = new Set(['_', 'PWD', 'OLDPWD', 'SHLVL', 'HOOKLOOP_ENV_FILE', TAG_VARIABLE])

function changed(line: string, before: Readonly<Record<string, string>>): readonly (readonly [string, string])[] {
  const at = line.indexOf('=')
  const [name, value] = [line.slice(0, at), line.slice(at + 1)]
  if (!/^[A-Za-z_]\w*$/.test(name) || own.has(name) || isHijacking(name) || before[name] === value) return []
  return [[name, value]]
}
