import { randomInt } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { minimalEnvironment } from './minimal-environment.ts'
import { runProcess, type ProcessOptions, type ProcessResult } from './run-process.ts'

/** About an hour in seconds, as a number that no other process of this machine has in its command line. */
export function anHour(): string {
  return `${3600 + randomInt(1_000)}.${randomInt(1e8, 1e9)}`
}

/** How many processes have this word in their command line. */
export function countWith(word: string): number {
  return pidsWith(word).length
}

/** Ends them, for tests in which they are left. */
export function endWith(word: string): void {
  for (const pid of pidsWith(word)) process.kill(pid, 'SIGKILL')
}

function pidsWith(word: string): readonly number[] {
  const found = readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').includes(word)
    } catch {
      return false
    }
  })
  return found.map(Number)
}

/** Whether a process is running, and is not a zombie. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false // it has ended, perhaps while its file was read
  }
}

export async function until(isSo: () => boolean, ms = 120_000): Promise<boolean> {
  const end = performance.now() + ms
  while (!isSo() && performance.now() < end) await sleep(10)
  return isSo()
}

/** Runs a bash script, by default with a minimal environment and small caps. */
export function runScript(script: string, options: Partial<ProcessOptions> = {}): Promise<ProcessResult> {
  return runProcess(['bash', '--noprofile', '--norc', '-c', script], {
    cwd: process.cwd(),
    env: minimalEnvironment(),
    output: { head: 10_000, tail: 10_000 },
    ...options,
  })
}
