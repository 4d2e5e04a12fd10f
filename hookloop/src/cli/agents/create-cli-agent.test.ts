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
import { createAgent, guard, guards, tool, type AgentOptions } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
const read = tool({
  name: 'read',
  description: 'Reads a file.',
  input: { type: 'object', properties: { path: { type: 'string' } } },
  execute: ({ path }) => { console.log('reading', path); return 'the content of ' + path },
})
const noSecrets = guard('beforeToolUse', (ctx) => (ctx.toolCall.args.path === '.env' ? ctx.block('Secrets stay.') : ctx), { name: 'no-secrets', tool: read })
const calls = [{ name: 'read', args: { path: 'a.md' } }, { name: 'read', args: { path: '.env' } }]
const model = scriptedModel([{ text: 'I look.', toolCalls: calls }, 'I have looked.'])
`

const options = agentFile(
  'options.ts',
  `${parts} export default { model, use: [read, noSecrets] } satisfies AgentOptions`,
)
const built = agentFile('built.mts', `${parts} export default createAgent({ model, use: [read, noSecrets] })`)
const limited = agentFile(
  'limited.ts',
  `${parts} export default createAgent({ model, use: [guards({ maxSteps: 9 })] })`,
)

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
          `⊘ read path: ".env" blocked by no-secrets (${file.split('/').slice(-2).join('/')}:10): Secrets stay.`,
        ],
      )
    })
  }

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
