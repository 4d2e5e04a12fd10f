import { spawn } from 'node:child_process'
import { join } from 'node:path'

export type Failure = {
  /** The title of the first test that fails, or why the tests ended early. */
  readonly title: string
  readonly timedOut: boolean
}

/** Undefined if the tests passed. */
export async function firstFailure(
  root: string,
  tests: readonly string[],
  options: { readonly timeoutMs: number; readonly env?: NodeJS.ProcessEnv },
): Promise<Failure | undefined> {
  const shared = tests.length > 1 ? [join(root, 'scripts/test-shared.ts')] : []
  const setup = `--import=${join(root, 'scripts/test-setup.ts')}`
  const args = ['--conditions=hookloop-source', setup, '--test-reporter=tap', ...shared, ...tests]
  const cache = join(root, '.cache/compiled')
  const env = { ...process.env, HOOKLOOP_TEST_SEED: '1', NODE_COMPILE_CACHE: cache, ...options.env }
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const endTests = (): void => endGroup(child.pid)
  process.once('exit', endTests)
  let [failed, printed]: [Failure | undefined, string] = [undefined, '']
  const end = (title: string, timedOut: boolean): void => {
    failed ??= { title, timedOut }
    endTests()
  }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed = printed.slice(-2_000) + text
    const found = /^\s*not ok \d+ - (.*)$/m.exec(printed)
    if (found !== null) end(found[1]!, false)
  })
  child.stderr.resume()
  const timer = setTimeout(end, options.timeoutMs, `no end within ${Math.round(options.timeoutMs / 1000)} s`, true)
  const code = await new Promise((resolve) => {
    child.on('error', resolve)
    child.on('exit', resolve)
  })
  clearTimeout(timer)
  process.off('exit', endTests)
  endTests()
  if (failed === undefined && code !== 0) return { title: `the tests ended with ${String(code)}`, timedOut: false }
  return failed
}

/** Ends the process with all that it started in its group. */
function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // it has ended
  }
}
