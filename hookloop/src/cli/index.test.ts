import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { hookloop } from './cli.fixture.ts'
import { exitCodeTable } from './exit-codes.ts'

const docs = readFileSync(new URL('../../../docs/cli.md', import.meta.url), 'utf8')

describe('hookloop', { concurrency: 2 }, () => {
  test('--help lists the commands, and run --help the options and exit codes', async () => {
    const [help, runHelp] = await Promise.all([hookloop(['--help']), hookloop(['run', '--help'])])
    assert.deepEqual([help.code, runHelp.code, help.stderr, runHelp.stderr], [0, 0, '', ''])
    assert.match(help.stdout, /Commands:\n {2}models .*\n(.*\n)* {2}run /)
    for (const [code, meaning] of exitCodeTable) assert.ok(runHelp.stdout.includes(`${code}  `), meaning)
  })

  test('--version is the version of the package', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string
    }
    assert.equal((await hookloop(['--version'])).stdout, `${version}\n`)
  })

  test('an unknown command is refused with 2 and a guess at what was meant', async () => {
    const { code, stdout, stderr } = await hookloop(['rnu', 'hello'])
    assert.deepEqual([code, stdout, stderr], [2, '', "error: unknown command 'rnu'\n(Did you mean run?)\n"])
  })

  test('without a command it prints its help and ends with 2', async () => {
    const { code, stderr } = await hookloop([])
    assert.equal(code, 2)
    assert.match(stderr, /^Usage: hookloop/)
  })

  test('every option and every exit code of run stands in the docs', async () => {
    const { stdout } = await hookloop(['run', '--help'])
    const options = [...stdout.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(([, name]) => name!)
    const codes = exitCodeTable.map(([code]) => `| ${code} |`)
    assert.ok(options.length > 12)
    assert.deepEqual(
      [...options, ...codes].filter((word) => !docs.includes(word)),
      [],
    )
  })
})
