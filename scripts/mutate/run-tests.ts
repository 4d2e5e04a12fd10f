import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Stage } from './related-tests.ts'

/** The title of the first test that fails, why the tests ended early, or undefined if they passed. */
export async function firstFailure(root: string, stage: Stage, timeoutMs: number): Promise<string | undefined> {
  const shared = stage.length > 1 ? [join(root, 'scripts/test-shared.ts')] : []
  const setup = `--import=${join(root, 'scripts/test-setup.ts')}`
  const args = ['--conditions=hookloop-source', setup, '--test-reporter=tap', ...shared, ...stage]
  const env = { ...process.env, HOOKLOOP_TEST_SEED: '1', NODE_COMPILE_CACHE: join(root, '.cache/compiled') }
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  let [failed, printed]: [string | undefined, string] = [undefined, '']
  const end = (why: string): void => {
    failed ??= why
    endGroup(child.pid)
  }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed = printed.slice(-2_000) + text
    const found = /^\s*not ok \d+ - (.*)$/m.exec(printed)
    if (found !== null) end(found[1]!)
  })
  child.stderr.resume()
  const timer = setTimeout(end, timeoutMs, `no end within ${timeoutMs / 1000} s`)
  const code = await new Promise((resolve) => {
    child.on('error', resolve)
    child.on('exit', resolve)
  })
  clearTimeout(timer)
  endGroup(child.pid)
  if (failed === undefined && code !== 0) return `the tests ended with ${String(code)}`
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
