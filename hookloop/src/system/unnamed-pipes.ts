import { spawn } from 'node:child_process'
import { closeSync, fstatSync, openSync } from 'node:fs'

/** Opens a file as a place, neither for reading nor for writing. Node has no name for it. */
const O_PATH = 0o10000000
/** Beside the three that a shell has, and one for itself: no shell needs to know numbers of more than one digit. */
const NUMBERS = [3, 4, 5, 6, 7, 8]
/** To start a program costs more than everything else here. So it makes many, in shells that it forks. */
const SHELLS = 20

/** So many are enough for those that run together most of the time. */
export const FEW = 9

/** The shell of this machine makes files of here-documents, as bash did before 5.1. */
export class NoPipes extends Error {}

/** What stands in a here-document comes through a pipe. Each shell says who it is, and holds its own until we hang up. */
const script = `exec 9<&0
for i in ${Array.from({ length: SHELLS }, (_, i) => i).join(' ')}; do (
exec ${NUMBERS.map((n) => `${n}<<x`).join(' ')}
${'.\nx\n'.repeat(NUMBERS.length)}read pid rest < /proc/self/stat
echo $pid
read line <&9
) & done
wait`

/**
 * Makes pipes like those between two commands, as places to be opened; Linux only. Node makes none, and one with a name in
 * the file system is not the same to who reads: when everything was written, a program that opens it once more, as
 * `cat /dev/stdin` does, would wait forever for somebody who writes.
 */
export async function makeUnnamedPipes(): Promise<readonly number[]> {
  const shell = spawn('/bin/sh', ['-c', script], { env: {}, stdio: ['pipe', 'pipe', 'ignore'] })
  const ended = new Promise<void>((resolve) => shell.once('exit', () => resolve()).once('error', () => resolve()))
  try {
    return openPlaces(await namesFrom(shell.stdout))
  } finally {
    shell.stdin.on('error', () => undefined).end()
    await ended // with all that it has forked: what was in the pipes is there until everybody has let go of them
  }
}

/** All of them, or a few where this process must not have more files open. */
function openPlaces(pids: readonly string[]): readonly number[] {
  const opened: number[] = []
  try {
    for (const pid of pids) for (const n of NUMBERS) opened.push(openSync(`/proc/${pid}/fd/${n}`, O_PATH))
    if (!fstatSync(opened[0]!).isFIFO()) throw new NoPipes()
  } catch (error) {
    const isEnough = opened.length >= FEW && !(error instanceof NoPipes)
    for (const fd of opened.splice(isEnough ? FEW : 0)) closeSync(fd)
    if (!isEnough) throw error
  }
  return opened
}

async function namesFrom(stdout: AsyncIterable<Buffer>): Promise<readonly string[]> {
  let said = ''
  for await (const bytes of stdout) {
    said += bytes.toString('latin1')
    const lines = said.split('\n')
    if (lines.length > SHELLS) return lines.slice(0, SHELLS)
  }
  throw new Error('The shell ended early.')
}
