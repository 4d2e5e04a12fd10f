import { spawn } from 'node:child_process'

const POSIX = process.platform !== 'win32'

/**
 * Runs a program without a shell. When the signal aborts, the program and all its child processes are ended: a test
 * runner starts children, so ending only the parent is not enough.
 */
export function runProgram(
  command: string,
  args: readonly string[],
  { folder, signal }: { readonly folder: string; readonly signal?: AbortSignal | undefined },
): Promise<{ exitCode: number; output: string }> {
  signal?.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<{ exitCode: number; output: string }>()
  const child = spawn(command === 'node' ? process.execPath : command, args, {
    cwd: folder,
    // A test runner reports differently inside another test runner, or with colors.
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, FORCE_COLOR: undefined },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: POSIX, // its own process group, which can be ended at once
  })
  const end = (): void => {
    try {
      if (POSIX && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
      else child.kill()
    } catch {
      // It has ended in the meantime.
    }
  }
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  }
  signal?.addEventListener('abort', end, { once: true })
  child.on('error', reject)
  child.on('close', (exitCode) => {
    signal?.removeEventListener('abort', end)
    if (exitCode === null) reject(new Error(`${command} was interrupted.`))
    else resolve({ exitCode, output })
  })
  return promise
}
