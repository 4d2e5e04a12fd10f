import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, suite, test } from 'node:test'
import { gitEnvironment } from '../repository.ts'
import { developerCommands, developerRules } from './developer.fixture.ts'
import { everyday, everydayRules } from './everyday.fixture.ts'
import { grammarNames } from './grammar-names.fixture.ts'
import { grammarOf } from './grammar.ts'
import { generousRules, hostile } from './hostile.fixture.ts'
import { commandJudge, type CommandVerdict } from './judge-command.ts'
import { isInstalled } from './program-help.fixture.ts'

// Runs what is allowed, in a folder of its own and as a user without rights if possible, and compares the files before and after.

const isRoot = process.getuid?.() === 0
const UNPRIVILEGED = 65534
const isSoak = process.env['HOOKLOOP_TEST_RUNS'] !== undefined

suite('what is allowed', () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-effects-')))
  after(() => rmSync(root, { recursive: true, force: true }))
  const place = createPlace(root)

  for (const [title, commands, judge] of [
    ['everyday commands', everyday, commandJudge(everydayRules)],
    ['commands of developers', developerCommands, commandJudge(developerRules)],
    ['hostile commands', hostile, commandJudge(generousRules)],
    [
      'combinations of words that the grammars know with words that they do not',
      combinations(),
      commandJudge(generousRules),
    ],
  ] as const)
    test(`writes only the files that the verdict names, and runs no program of the folder: ${title}`, () => {
      const allowed = commands.map((command) => ({ command, verdict: judge(command) })).filter(isHarmless)
      const wrong = allowed.flatMap(({ command, verdict }) => {
        const before = place.files()
        place.run(command)
        const now = place.files()
        const changed = [...new Set([...before.keys(), ...now.keys()])].filter(
          (file) => before.get(file) !== now.get(file),
        )
        const named = verdict.commands.flatMap(({ writes = [] }) => writes).map((file) => join('work', file))
        const unnamed = changed.filter((file) => !named.includes(file))
        if (changed.length > 0) place.reset()
        return unnamed.length === 0 ? [] : [`${command}: ${unnamed.join(', ')}`]
      })
      assert.deepEqual(wrong, [])
    })

  test('is run at all: a command that would be allowed without a policy leaves its mark', () => {
    place.run('./payload')
    assert.ok(place.files().has('outside/MARK'))
    place.reset()
  })
})

/** Commands whose effect a user wants, commands that wait, and commands that need a network or a terminal, are not run. */
function isHarmless({ command, verdict }: { readonly command: string; readonly verdict: CommandVerdict }): boolean {
  if (verdict.verdict !== 'allow') return false
  return !/\b(?:npm|npx|pnpm|yarn|make|cargo|go|docker|kubectl|gh|curl|tsc|eslint|prettier|jest|vitest|pytest|mypy|ruff|gradlew|cmake|gcc|node --test|node scripts|manage|tail -f|tail -F|git (?:add|commit|stash|checkout|switch|restore|merge|rebase|fetch|pull|push|clone|tag|branch)|mkdir|touch|cp|mv)\b/.test(
    command,
  )
}

/** Options with hostile values, and hostile words between harmless ones, for every program that only reads. */
function combinations(): readonly string[] {
  const values = [
    './payload',
    '|./payload',
    '@args',
    '-',
    '--',
    '-o',
    'MARK',
    '../outside/MARK',
    '$PWD',
    '"$HOME"',
    '*',
    './*',
    "'!./payload'",
    '=./payload',
  ]
  const names = grammarNames.filter((name) => !grammarOf(name)!.flags.has('named') && isInstalled(name.split(' ')[0]!))
  return names.flatMap((name, place) =>
    [...grammarOf(name)!.options.keys()].flatMap((option, index) => {
      const value = values[(place + index) % values.length]!
      const next = values[(place + index * 3 + 1) % values.length]!
      const forms = [
        `${name} ${option} ${value}`,
        `${name} ${option}=${value} ${next}`,
        `${name} ${option}${value} -- ${next} a.txt`,
      ]
      return isSoak ? forms : [forms[(place + index) % forms.length]!]
    }),
  )
}

/** A repository with a payload in every name that a program may take for one of its own, and a folder beside it. */
function createPlace(root: string) {
  const [work, outside] = [join(root, 'work'), join(root, 'outside')]
  const payload = `#!/bin/sh\n/bin/echo run >> '${join(outside, 'MARK')}'\n`
  const reset = (): void => {
    for (const folder of [work, outside]) rmSync(folder, { recursive: true, force: true })
    for (const folder of [work, outside, join(work, 'src')]) mkdirSync(folder, { recursive: true })
    const names = ['payload', 'sh', 'ls', '-exec', '-delete', '-o', '--output=MARK', '--help', '1', 'a.awk', 'diff.sh']
    for (const name of names) writeFileSync(join(work, name), payload, { mode: 0o755 })
    for (const name of ['a.txt', 'b.txt', 'a.ts', 'src/a.ts', 'src/b.ts', 'notes.md'])
      writeFileSync(join(work, name), 'a\nb\n')
    writeFileSync(join(work, 'args'), '--output=MARK\n-o\nMARK\n')
    writeFileSync(join(work, 'package.json'), '{ "name": "a", "version": "1.0.0", "scripts": {} }\n')
    spawnSync('git', ['init', '-q'], { cwd: work })
    spawnSync('git', ['add', 'a.txt', 'src'], { cwd: work })
    spawnSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', 'commit', '-qm', 'first'], { cwd: work })
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
          HOME: outside,
          PAGER: 'cat',
          TERM: 'dumb',
          GIT_OPTIONAL_LOCKS: '0',
        },
        stdio: ['ignore', 'ignore', 'ignore'],
        timeout: 5_000,
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
