import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { hookloop, start, type Ended } from './cli.fixture.ts'
import { commands } from './commands.ts'
import { exitCodeTable } from './exit-codes.ts'

const docs = readFileSync(new URL('../../../site/reference/cli.md', import.meta.url), 'utf8')

const entries = Object.values(commands).flat()

const help = (command: string): Promise<Ended> => hookloop([...command.split(' '), '--help'])

describe('hookloop', () => {
  test('--help lists every command in groups, and run --help the exit codes', async () => {
    const [all, run] = [await hookloop(['--help']), await help('run')]
    assert.deepEqual([all.code, run.code, all.stderr, run.stderr], [0, 0, '', ''])
    const groups = all.stdout
      .split('\n\n')
      .filter((part) => Object.keys(commands).some((each) => part.startsWith(each)))
    const listed = groups.flatMap((group) => [...group.matchAll(/^ {2}(\w+) .*[a-z]/gm)].map(([, name]) => name!))
    assert.deepEqual(
      listed,
      entries.map(({ name }) => name).filter((name) => !name.includes(' ')),
    )
    for (const [code, meaning] of exitCodeTable) assert.ok(run.stdout.includes(`${code}  `), meaning)
  })

  for (const { name } of entries.filter(({ load }) => load !== undefined)) {
    test(`${name} --help has usage, a description, examples, and a text for every option; the docs have the command`, async () => {
      const { code, stdout } = await help(name)
      const lines = [...stdout.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)(.*)\n( {20,})?/gm)]
      const options = lines.map(([, option]) => option!)
      assert.equal(code, 0)
      assert.match(stdout, new RegExp(`^Usage: hookloop ${name} .*\\n\\n[A-Z].*\\.\\n\\n`, 's'))
      assert.match(stdout, /\n\nExamples:\n {2}.*hookloop /)
      assert.deepEqual(
        ['--json', '--help'].filter((option) => !options.includes(option)),
        [],
      )
      assert.deepEqual(
        lines.filter(([, , text, wrapped]) => wrapped === undefined && !/ {2}\S/.test(text!)).map(([line]) => line),
        [],
      )
      assert.ok(docs.includes(`hookloop ${name}`))
    })
  }

  test('every exit code is in the docs', () => {
    const missing = exitCodeTable.filter(([code]) => !docs.includes(`| ${code} |`))
    assert.deepEqual(missing, [])
  })

  test('the value of an option is never read as an option', async () => {
    const { code, stdout } = await hookloop(['run', 'hello', '--model', 'none/x', '--system', '--version'])
    assert.deepEqual([code, stdout], [2, ''])
  })

  test('--version prints the version of the package', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string
    }
    assert.deepEqual(await start(['--version']).ended, { code: 0, stdout: `${version}\n`, stderr: '' })
  })

  test('words that a command or a subcommand does not take exit with 2', async () => {
    for (const words of ['hooks list here', 'policy bash ls', 'sessions prune --older-than 1d all', 'models all']) {
      const { code, stderr } = await hookloop(words.split(' '))
      assert.deepEqual([words, code], [words, 2])
      assert.match(stderr, /too many arguments for/)
    }
  })

  test('help of an unknown command exits with 2, suggests the nearest one and runs nothing', async () => {
    const [unknown, child] = [await hookloop(['help', 'runn']), await hookloop(['help', 'hooks', 'tset'])]
    assert.deepEqual([unknown.code, unknown.stdout, child.code, child.stdout], [2, '', 2, ''])
    assert.match(unknown.stderr, /unknown command 'runn'\n\(Did you mean run\?\)/)
    assert.match(child.stderr, /unknown command 'tset' of hooks\n\(Did you mean test\?\)/)
    assert.deepEqual(await hookloop(['help', 'run', 'hello']), await help('run'))
  })
})
