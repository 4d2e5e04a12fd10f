import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { hookloop, type Ended } from './cli.fixture.ts'
import { exitCodeTable } from './exit-codes.ts'

const docs = readFileSync(new URL('../../../site/reference/cli.md', import.meta.url), 'utf8')

/** Every command there is, with those below it. */
const commands = [
  'models',
  'run',
  'chat',
  'resume',
  'approvals',
  'approve',
  'deny',
  'sessions',
  'sessions delete',
].concat(
  ['explain', 'steps', 'fork', 'diff', 'replay', 'export', 'import'],
  ['policy', 'policy bash'],
  ['hooks', 'hooks list', 'hooks test', 'hooks doctor', 'hooks import', 'trust'],
)

const help = (command: string): Promise<Ended> => hookloop([...command.split(' '), '--help'])

describe('hookloop', { concurrency: 2 }, () => {
  test('--help lists the commands, and run --help the exit codes', async () => {
    const [all, run] = await Promise.all([hookloop(['--help']), help('run')])
    assert.deepEqual([all.code, run.code, all.stderr, run.stderr], [0, 0, '', ''])
    const listed = [...all.stdout.matchAll(/^ {2}(\w+) .*[a-z]/gm)].map(([, name]) => name!)
    assert.deepEqual(
      listed.filter((name) => name !== 'help' && name !== 'node'),
      commands.filter((name) => !name.includes(' ')),
    )
    for (const [code, meaning] of exitCodeTable) assert.ok(run.stdout.includes(`${code}  `), meaning)
  })

  test('every option of every command, and every exit code, stands in the docs', async () => {
    const doing = commands.filter((name) => name !== 'policy') // which only holds others
    const pages = await Promise.all(doing.map(help))
    const options = pages.map(({ stdout }) =>
      [...stdout.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(([, name]) => name!),
    )
    assert.ok(options.every((each) => each.includes('--json') && each.includes('--help')))
    const words = [...new Set(options.flat()), ...commands.map((name) => `hookloop ${name}`)]
    const codes = exitCodeTable.map(([code]) => `| ${code} |`)
    assert.deepEqual(
      [...words, ...codes].filter((word) => !docs.includes(word)),
      [],
    )
  })

  test('a value is never taken for an option', async () => {
    const { code, stdout } = await hookloop(['run', 'hello', '--model', 'none/x', '--system', '--version'])
    assert.deepEqual([code, stdout], [2, ''])
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
})
