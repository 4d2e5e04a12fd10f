import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { gitEnvironment } from '../repository.ts'

/** Newer versions of git tidy up in the background after a commit. */
const committer = ['-c', 'user.name=a', '-c', 'user.email=a@b.c', '-c', 'maintenance.auto=false', '-c', 'gc.auto=0']

const isRoot = process.getuid?.() === 0
const UNPRIVILEGED = 65534

export type Place = {
  readonly reset: () => void
  readonly files: () => ReadonlyMap<string, string>
  readonly run: (command: string) => void
}

/** The files that a command creates, changes or removes, relative to the place. */
export function changedIn(place: Place, command: string): readonly string[] {
  const before = place.files()
  place.run(command)
  const now = place.files()
  return [...new Set([...before.keys(), ...now.keys()])].filter((file) => before.get(file) !== now.get(file))
}

/** A repository with a payload in every name that a program may take for one of its own, and a folder beside it. */
export function createPlace(root: string, prepare: (work: string) => void = () => undefined): Place {
  const [work, outside, home] = ['work', 'outside', 'home'].map((name) => join(root, name)) as [string, string, string]
  const payload = `#!/bin/sh\n/bin/echo run >> '${join(outside, 'MARK')}'\n`
  const reset = (): void => {
    for (const folder of [work, outside, home]) rmSync(folder, { recursive: true, force: true })
    for (const folder of [outside, home, join(work, 'src')]) mkdirSync(folder, { recursive: true })
    const names = ['payload', 'sh', 'ls', '-exec', '-delete', '-o', '--output=MARK', '--help', '1', 'a.awk', 'diff.sh']
    for (const name of names) writeFileSync(join(work, name), payload, { mode: 0o755 })
    for (const name of ['a.txt', 'b.txt', 'a.ts', 'src/a.ts', 'src/b.ts', 'notes.md'])
      writeFileSync(join(work, name), 'a\nb\n')
    writeFileSync(join(work, 'args'), '--output=MARK\n-o\nMARK\n')
    writeFileSync(join(work, 'package.json'), '{ "name": "a", "version": "1.0.0", "scripts": {} }\n')
    prepare(work)
    spawnSync('git', ['init', '-q'], { cwd: work })
    spawnSync('git', ['add', 'a.txt', 'src'], { cwd: work })
    spawnSync('git', [...committer, 'commit', '-qm', 'first'], { cwd: work })
    writeFileSync(join(work, 'a.txt'), 'a\nc\n')
    if (isRoot)
      for (const path of ['', ...readdirSync(root, { recursive: true, encoding: 'utf8' })])
        chownSync(join(root, path), UNPRIVILEGED, UNPRIVILEGED)
    chmodSync(root, 0o755)
  }
  reset()
  return {
    reset,
    files: () => filesIn(root),
    run: (command: string): void => {
      spawnSync('/bin/bash', ['--noprofile', '--norc', '-c', '--', command], {
        cwd: work,
        env: {
          ...gitEnvironment(command),
          PATH: process.env['PATH'],
          HOME: home,
          PAGER: 'cat',
          TERM: 'dumb',
          GIT_OPTIONAL_LOCKS: '0',
        },
        stdio: ['ignore', 'ignore', 'ignore', 'pipe'], // every process inherits the pipe: waits for those in the background too
        timeout: 60_000,
        killSignal: 'SIGKILL',
        ...(isRoot ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}),
      })
    },
  }
}

/** The files of a folder by their path, with time and size. */
function filesIn(root: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const name = relative(root, path)
    if (entry.isDirectory()) found.set(name, 'folder')
    else if (entry.isFile())
      found.set(name, name.includes('.git/') ? `${statSync(path).size}` : readFileSync(path, 'latin1'))
    else found.set(name, 'other')
  }
  return found
}
