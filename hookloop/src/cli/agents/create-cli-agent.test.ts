import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { hookloop } from '../cli.fixture.ts'

// Outside the repository, as a user's file would be: it finds the library through the command that loads it.
const folder = mkdtempSync(join(tmpdir(), 'hookloop-agent-'))
after(() => rmSync(folder, { recursive: true }))

function agentFile(name: string, code: string): string {
  writeFileSync(join(folder, name), code)
  return join(folder, name)
}

const parts = `
import { approval, createAgent, guard, guards, tool, type AgentOptions } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
const read = tool({
  name: 'read',
  description: 'Reads a file.',
  input: { type: 'object', properties: { path: { type: 'string' } } },
  execute: ({ path }) => { console.log('reading', path); return 'the content of ' + path },
})
const remove = tool({ name: 'remove', description: 'Removes a file.', input: { type: 'object' }, ask: true, execute: () => 'gone' })
const noSecrets = guard('beforeToolUse', (ctx) => (ctx.toolCall.args.path === '.env' ? ctx.block('Secrets stay.') : ctx), { name: 'no-secrets', tool: read })
const calls = [{ name: 'read', args: { path: 'a.md' } }, { name: 'read', args: { path: '.env' } }]
const model = scriptedModel([{ text: 'I look.', toolCalls: calls }, 'I have looked.'])
const asks = scriptedModel([{ toolCalls: [{ name: 'remove', args: { path: 'a.md' } }] }, 'So be it.'])
`

const options = agentFile(
  'options.ts',
  `${parts} export default { model, use: [read, noSecrets] } satisfies AgentOptions`,
)
const built = agentFile('built.mts', `${parts} export default createAgent({ model, use: [read, noSecrets] })`)
const modelless = agentFile('modelless.ts', `${parts} export default { use: [read, noSecrets] }`)
const limited = agentFile(
  'limited.ts',
  `${parts} export default createAgent({ model, use: [guards({ maxSteps: 9 })] })`,
)
const asking = agentFile('asking.ts', `${parts} export default { model: asks, use: [remove] }`)
const waiting = agentFile('waiting.ts', `${parts} export default { model: asks, use: [remove, approval('suspend')] }`)

describe('hookloop run --agent', { concurrency: 2 }, () => {
  for (const [what, file] of [
    ['options', options],
    ['an agent', built],
  ] as const) {
    test(`a file that exports ${what} runs with its tools and its guards`, async () => {
      const { code, stdout, stderr } = await hookloop(['run', 'Go.', '--agent', file])
      assert.deepEqual([code, stdout], [0, 'I have looked.\n'])
      const lines = stderr.replace(/\d+ ms/, 'N ms').split('\n')
      assert.ok(lines.includes('reading a.md'))
      assert.deepEqual(
        lines.filter((line) => /^[▸✓⊘] read/.test(line)),
        [
          '▸ read path: "a.md"',
          '✓ read N ms the content of a.md',
          `⊘ read path: ".env" blocked by no-secrets (${file.split('/').slice(-2).join('/')}:11): Secrets stay.`,
        ],
      )
    })
  }

  test('console output of the file is neither in the answer nor among the events', async () => {
    const { stdout } = await hookloop(['run', 'Go.', '--agent', options, '--json'])
    assert.doesNotThrow(() =>
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    )
  })

  test('limits of the command line apply to it', async () => {
    const ends = await Promise.all(
      [options, built].map((file) => hookloop(['run', 'Go.', '--agent', file, '--max-steps', '1'])),
    )
    assert.deepEqual(
      ends.map(({ code, stdout }) => [code, stdout]),
      [
        [3, 'I look.\n'],
        [3, 'I look.\n'],
      ],
    )
  })

  test('an agent with its own guards() rejects limits of the command line', async () => {
    const { code, stderr } = await hookloop(['run', 'Go.', '--agent', limited, '--max-steps', '1'])
    assert.deepEqual(
      [code, stderr],
      [2, `error: The agent file ${limited}: it has guards() already. Set the limits there.\n`],
    )
  })

  test('--model overrides the model of the options, and is rejected for an agent from createAgent()', async () => {
    const [other, finished] = await Promise.all([
      hookloop(['run', 'Go.', '--agent', options, '--model', 'groq/x']),
      hookloop(['run', 'Go.', '--agent', built, '--model', 'groq/x']),
    ])
    assert.match(other.stderr, /"groq\/x" needs the package/)
    assert.match(finished.stderr, /--model cannot change an agent .* Export the options/)
    assert.deepEqual([other.code, finished.code], [2, 2])
  })

  test('options without a model need one from the command line', async () => {
    const { code, stderr } = await hookloop(['run', 'Go.', '--agent', modelless])
    assert.equal(code, 2)
    assert.match(stderr, /modelless\.ts names no model\. /)
  })

  test('without a terminal and a store, an approval is blocked', async () => {
    const { code, stdout, stderr } = await hookloop(['run', 'Go.', '--agent', asking, '--no-store'])
    assert.deepEqual([code, stdout], [0, 'So be it.\n'])
    assert.match(stderr, /⊘ remove path: "a\.md" blocked by approval: .* the agent has no approver/)
  })

  test('a run suspended for approval exits with 4 and shows the approval once', async () => {
    const ways = [[], ['--quiet'], ['--no-stream']]
    const ends = await Promise.all(ways.map((way) => hookloop(['run', 'Go.', '--agent', waiting, ...way])))
    const asked = '? remove path: "a.md" Run "remove"? (asked by tool "remove")\n‖ suspended, waiting for 1 approval'
    assert.deepEqual(
      ends.map(({ code, stdout, stderr }) => [code, stdout, stderr.split(' · ')[0]]),
      ways.map(() => [4, '', asked]),
    )
  })

  test('a file with another export, or one that throws, is rejected with its name', async () => {
    const broken = agentFile('broken.ts', `throw new Error('not today')`)
    const empty = agentFile('empty.ts', 'export const agent = 1')
    const [first, second] = await Promise.all([broken, empty].map((file) => hookloop(['run', 'Go.', '--agent', file])))
    assert.deepEqual([first!.code, first!.stderr], [2, `error: The agent file ${broken} cannot be loaded: not today\n`])
    assert.match(second!.stderr, /empty\.ts: its default export must be an agent, or the options of createAgent\./)
  })

  test('a module in a commonjs package is rejected with a way to fix it', async () => {
    const inside = join(folder, 'commonjs')
    mkdirSync(inside)
    writeFileSync(join(inside, 'package.json'), '{"type":"commonjs"}')
    const file = agentFile('commonjs/agent.ts', `${parts} export default { model }`)
    const { code, stderr } = await hookloop(['run', 'Go.', '--agent', file])
    assert.equal(code, 2)
    assert.match(stderr, /outside a module\n.*Rename the file to \.mts, or run: npm pkg set type=module\n$/)
  })

  test('an unexpected error of the file exits with 1, not with 2', async () => {
    const file = agentFile('bug.ts', `${parts} export default { model, get use() { throw new TypeError('a bug') } }`)
    const { code, stderr } = await hookloop(['run', 'Go.', '--agent', file])
    assert.equal(code, 1)
    assert.match(stderr, /^error: TypeError: a bug\n/)
  })
})
