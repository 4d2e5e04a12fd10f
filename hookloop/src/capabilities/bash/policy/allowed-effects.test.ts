import assert from 'node:assert/strict'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { developerCommands, developerLists, developerRules, listRules } from './developer.fixture.ts'
import { everyday, everydayRules } from './everyday.fixture.ts'
import { changedIn, createPlace } from './effects-place.fixture.ts'
import { grammarEntries } from './grammar-names.fixture.ts'
import { grammarOf } from './grammar.ts'
import { generousRules, hostile } from './hostile.fixture.ts'
import { commandJudge, type CommandVerdict } from './judge-command.ts'
import { isInstalled } from './program-help.fixture.ts'

// Runs what is allowed, in a folder of its own and as a user without rights if possible, and compares the files before and after.

const isSoak = process.env['HOOKLOOP_TEST_RUNS'] !== undefined

suite('what is allowed', () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-effects-')))
  after(() => rmSync(root, { recursive: true, force: true }))
  const place = createPlace(root)

  for (const [title, commands, judge] of [
    ['everyday commands', everyday, commandJudge(everydayRules)],
    ['commands of developers', developerCommands, commandJudge(developerRules)],
    [
      'lists of everyday commands',
      [...developerLists.values()].flat().filter((_, index) => isSoak || index % 5 === 0),
      commandJudge(listRules),
    ],
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
        const changed = changedIn(place, command)
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
  return !/\b(?:npm|npx|pnpm|yarn|make|mvn|gradle|terraform|bun|deno|cargo|go|docker|kubectl|gh|curl|tsc|eslint|prettier|jest|vitest|pytest|mypy|ruff|gradlew|cmake|gcc|node --test|node scripts|manage|tail -f|tail -F|until|sleep|kill|yes|while !|pip|venv|git (?:add|commit|stash|checkout|switch|restore|merge|rebase|fetch|pull|push|clone|tag|branch|apply|clean|cherry-pick|revert|reset|mv|rm)|mkdir|touch|cp|mv)\b/.test(
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
  const isRead = (name: string): boolean => !grammarOf(name)!.flags.has('named') && isInstalled(name.split(' ')[0]!)
  const entries = grammarEntries.map((names) => names.filter(isRead)).filter((names) => names.length > 0)
  return entries.flatMap((names, place) =>
    [...grammarOf(names[0]!)!.options.keys()].flatMap((option, index) => {
      const name = names[index % names.length]! // the names of an entry share its words
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
