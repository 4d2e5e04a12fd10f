import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, openSync } from 'node:fs'

/** Opens a file as a place, neither for reading nor for writing. Node has no name for it. */
export const O_PATH = 0o10000000

/** Those that any shell can write, beside the three that it has. */
const numbers = [3, 4, 5, 6, 7, 8, 9]
/** What stands in a here-document comes through a pipe. The shell holds its ends until it has read a line, or we are gone. */
const script = `exec ${numbers.map((n) => `${n}<<x`).join(' ')}\n${'.\nx\n'.repeat(numbers.length)}echo; read line`

/**
 * Makes pipes like those between two commands, as places to be opened; Linux only. One with a name in the file system is not
 * the same to who reads: when everything was written, a program that opens it once more, as `cat /dev/stdin` does, would
 * wait forever for somebody who writes.
 */
export async function makeUnnamedPipes(): Promise<readonly number[]> {
  const shell = spawn('/bin/sh', ['-c', script], { env: {}, stdio: ['pipe', 'pipe', 'ignore'] })
  const ended = new Promise<void>((resolve) => shell.once('exit', () => resolve()).once('error', () => resolve()))
  shell.stdin.on('error', () => undefined) // it is told nothing
  const opened: number[] = []
  try {
    await Promise.race([once(shell.stdout, 'data'), ended])
    for (const n of numbers) opened.push(openSync(`/proc/${shell.pid}/fd/${n}`, O_PATH))
    if (opened.every((fd) => fstatSync(fd).isFIFO())) return opened
    throw new Error('The shell of this machine makes files and no pipes.')
  } catch (error) {
    for (const fd of opened) closeSync(fd)
    throw error
  } finally {
    shell.kill('SIGKILL')
    await ended // what it wrote into them is there until it has let go of them
  }
}
