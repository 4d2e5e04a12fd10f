import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { entriesIn, grammarNames } from './grammar-names.fixture.ts'
import { grammarOf, type Option } from './grammar.ts'
import { development } from './grammars/development.ts'
import { files } from './grammars/files.ts'
import { git } from './grammars/git.ts'
import { wrappers } from './grammars/wrappers.ts'
import { kinds } from './kinds.ts'
import { answerTo, helpOf, isInstalled } from './program-help.fixture.ts'

const optionsOf = (name: string): readonly (readonly [string, Option])[] =>
  [...grammarOf(name)!.options].filter(
    ([option, { kind }]) =>
      !['-#', '--', '--help', '--version'].includes(option) && !['command', 'inner', 'shell'].includes(kind),
  )

/** Programs that accept no abbreviations, those whose help does not list all options, and `yq`, the name of two programs. */
const EXACT = /^(?:npm|jq|yq|cargo|docker|kubectl|git rev-list|git diff-\w+)\b/

/** Options of the usual plugins of pytest, of newer builders of docker, and the properties of maven. */
const UNLISTED =
  /^(?:pytest: (?:-n|--numprocesses|--no-cov|--no-cov-on-fail|--cov|--cov-report|--cov-fail-under|--timeout)|docker build: --(?:load|progress)|mvn: -D.*)$/

suite('grammars', () => {
  test('use only kinds of words that exist, and no name twice', () => {
    const names = [files, git, development, wrappers].flatMap(entriesIn).flat()
    assert.deepEqual(
      names.filter((name, index) => names.indexOf(name) !== index),
      [],
    )
    const isKnown = (kind: string): boolean => kind in kinds || /^(?:command|inner|shell|alias)$|\|/.test(kind)
    const wrong = grammarNames.flatMap((name) => {
      const { options, operands } = grammarOf(name)!
      const used = [...operands, ...[...options.values()].map(({ kind }) => kind)]
      return used.filter((kind) => !isKnown(kind)).map((kind) => `${name}: ${kind}`)
    })
    assert.deepEqual(wrong, [])
  })

  test('allow no option with a letter or name that is empty', () => {
    const wrong = grammarNames.filter((name) =>
      [...grammarOf(name)!.options.keys()].some((option) => !/^--?[\w.-]+$|^-[#/]$|^--$/.test(option)),
    )
    assert.deepEqual(wrong, [])
  })
})

suite('grammars and the installed programs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-option-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  spawnSync('git', ['init', '-q'], { cwd: folder })
  const programs = (text: string): readonly (readonly string[])[] =>
    entriesIn(text)
      .map((names) => names.filter((name) => isInstalled(name.split(' ')[0]!)))
      .filter((names) => names.length > 0)

  const accepts = (
    words: readonly string[],
    [option, { values, isOptional, kind }]: readonly [string, Option],
  ): boolean => {
    const answer = answerTo([...words, option], folder)
    if (values === 0 && (answer === 'accepted' || !isOptional)) return answer === 'accepted'
    const value = kind.includes('|') ? kind.split('|')[0]! : '1'
    const isAttached = option.startsWith('--') || kind.includes('|')
    const withValue = isAttached ? [`${option}=${value}`] : [option, value, value]
    return answer === 'needs a value' || answerTo([...words, ...withValue], folder) === 'accepted'
  }

  test('programs for files, and git, accept every option, with and without a value as the grammar says', () => {
    const plain = wrappers.split('\n').filter((line) => /!plain|!appends/.test(line))
    const gcc = development
      .replace(/\n\s+/g, ' ')
      .split('\n')
      .filter((line) => line.startsWith('gcc'))
    const wrong = [files, git, [...plain, ...gcc].join('\n')].flatMap(programs).flatMap((names) => {
      const options = names[0] === 'yq' ? [] : optionsOf(names[0]!)
      const flags = options
        .filter(([, { values, isOptional }]) => values === 0 && !isOptional)
        .map(([option]) => option)
      const areKnown = names.some((name) => answerTo([...name.split(' '), ...flags], folder) === 'accepted')
      return options
        .filter(([option]) => !areKnown || !flags.includes(option))
        .filter((option) => !names.some((name) => accepts(name.split(' '), option)))
        .map(([option]) => `${names.join(', ')}: ${option}`)
    })
    assert.deepEqual(wrong, [])
  })

  test('no option is an abbreviation of another option of a program', () => {
    const wrong = [files, git, development]
      .flatMap(programs)
      .flat()
      .filter((name) => !EXACT.test(name))
      .flatMap((name) => {
        const help = helpOf(name.split(' '))
        const long = new Set([...help.matchAll(/(?<![\w-])--[\w-]+/g)].map(([each]) => each))
        const isShort = (option: string): boolean =>
          !long.has(option) && [...long].some((each) => each.startsWith(option))
        return optionsOf(name)
          .filter(([option]) => option.startsWith('--') && isShort(option))
          .map(([option]) => `${name}: ${option}`)
      })
    assert.deepEqual(wrong, [])
  })

  test('other programs have every option in their help', () => {
    // The help of cargo clippy only says that it has the options of cargo check.
    const wrong = programs(development)
      .filter(([name]) => name !== 'gcc' && name !== 'cargo clippy')
      .flatMap(([name = '']) => {
        const help = helpOf(name.split(' '))
        const isMissing = ([option]: readonly [string, Option]): boolean =>
          !new RegExp(`(?<![\\w-])${option.replaceAll('.', '\\.')}(?![\\w])`).test(help)
        const missing = help === '' ? [] : optionsOf(name).filter(isMissing)
        return missing.map(([option]) => `${name}: ${option}`).filter((each) => !UNLISTED.test(each))
      })
    assert.deepEqual(wrong, [])
  })
})
