import { spawn } from 'node:child_process'

const POSIX = process.platform !== 'win32'

/**
 * Runs a program to its end, without a shell. When the signal aborts, it is ended with everything it has started: a
 * test runner has children, and it is no use to end only the parent.
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
    // A test runner that finds itself inside another, or that is told to use colours, would report differently.
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, FORCE_COLOR: undefined },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: POSIX, // the leader of a group of its own, which can be ended as one
  })
  const end = (): void => {
    try {
      if (POSIX && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
      else child.kill()
    } catch {
      // It has ended by itself in the meantime.
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
    if (exitCode === null) reject(new Error(`${command} was cut off.`))
    else resolve({ exitCode, output })
  })
  return promise
}
