import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// With an empty PATH, bash passes every command that it would run to this function.
const handler = '() { printf "%s\\0" "$#" "$@" >> "$LOG"; }'

/** The commands that bash would run for a text, as argument lists in no particular order. Nothing is run. */
export function whatBashRuns(command: string): readonly (readonly string[])[] {
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-runs-'))
  const log = join(folder, 'log')
  try {
    spawnSync('/bin/bash', ['--noprofile', '--norc', '-c', `: > "$LOG"\n${command}\nwait`], {
      cwd: folder,
      env: {
        PATH: join(folder, 'nothing'),
        LOG: log,
        LC_ALL: 'C.UTF-8',
        'BASH_FUNC_command_not_found_handle%%': handler,
      },
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'], // every process inherits the pipe: waits for process substitutions too
      timeout: 10_000,
    })
    return argumentLists(readFileSync(log, 'utf8').split('\0').slice(0, -1))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function argumentLists(written: readonly string[]): readonly (readonly string[])[] {
  const lists: string[][] = []
  for (let at = 0; at < written.length;) {
    const length = Number(written[at])
    lists.push(written.slice(at + 1, at + 1 + length))
    at += 1 + length
  }
  return lists
}
