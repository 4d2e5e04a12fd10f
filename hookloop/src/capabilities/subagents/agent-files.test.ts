import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { fromAgentMarkdown, readAgents, toAgentMarkdown } from './agent-files.ts'

const root = mkdtempSync(join(tmpdir(), 'hookloop-agents-'))
after(() => rmSync(root, { recursive: true, force: true }))
let folders = 0

function folderOf(files: { readonly [name: string]: string | Buffer }): string {
  const folder = join(root, `${++folders}`)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

const file = (head: string, body = 'Do it.'): string => `---\n${head}\n---\n\n${body}\n`

test('agent files of Claude Code are read as they are', () => {
  const folder = folderOf({
    'code-reviewer.md': file(
      'name: code-reviewer\ndescription: Use it when: code was written. Reviews "it".\ntools: Read, Grep, Bash(git diff:*)\nmodel: sonnet\ncolor: blue\npermissionMode: plan',
      'You review code.',
    ),
    'deep/down/helper.md': file('description: Helps.'),
    'notes.txt': 'no agent',
  })
  const { agents, problems } = readAgents(folder)
  assert.deepEqual(agents, {
    'code-reviewer': {
      name: 'code-reviewer',
      description: 'Use it when: code was written. Reviews "it".',
      instructions: 'You review code.',
      tools: ['Read', 'Grep'],
      model: 'sonnet',
    },
    helper: { name: 'helper', description: 'Helps.', instructions: 'Do it.' },
  })
  assert.deepEqual(
    problems.map(({ message }) => message),
    ['"Bash(git diff:*)" is not given: rules for a part of a tool are not supported', 'ignored: color, permissionMode'],
  )
})

test('no tools and all tools are distinguished in every form', () => {
  const tools = (line: string) => fromAgentMarkdown(file(`name: a\ndescription: x\n${line}`)).definition.tools
  assert.deepEqual(tools('tools: []'), [])
  assert.deepEqual(tools('tools:\n  - a\n  - b'), ['a', 'b'])
  assert.deepEqual(tools('tools: a, b'), ['a', 'b'])
  assert.deepEqual(tools('tools: Bash(a:*, b:*), c'), ['c'])
  assert.deepEqual(tools('tools: Bash(a:*)'), [], 'what is given in part is not given')
  assert.deepEqual(tools('tools: "*"'), undefined)
  assert.deepEqual(tools('model: inherit'), undefined)
  for (const neither of ['tools:', 'tools: ""', 'tools: null', 'tools: 3', 'tools: [a, 3]', 'tools: {a: b}']) {
    assert.throws(() => tools(neither), /"tools" must be a list of names; \[\] is none, and left out is all/, neither)
  }
})

test('a tool that is forbidden in part is forbidden completely', () => {
  const { definition, ignored } = fromAgentMarkdown(file('name: a\ndescription: x\ndisallowedTools: Bash(rm:*), Write'))
  assert.deepEqual(definition.disallowedTools, ['Bash', 'Write'])
  assert.deepEqual(ignored, ['"Bash(rm:*)" is forbidden completely'])
})

test('a broken file is reported, and the other agents are read', () => {
  const folder = folderOf({
    'a-good.md': file('description: Good.'),
    'b-broken.md': '---\nname: [\n---\n',
    'c-open.md': '---\nname: x\n',
    'd-nothing.md': 'Just text.',
    'e-bomb.md': file('name: bomb\ndescription: x\na: &a [1]\nb: *a'),
    'f-binary.md': Buffer.from([0x2d, 0x2d, 0x2d, 0x0a, 0xff, 0xfe]),
    'g-huge.md': `${file('description: Huge.')}${'x'.repeat(300_000)}`,
    'h-name.md': file('name: ../../etc/passwd\ndescription: x'),
    'i-again.md': file('name: a-good\ndescription: Another.'),
    'j-limits.md': file('description: x\nmaxSteps: many'),
    'z-good.md': file('description: Good.\nmaxTurns: 7\nmaxCost: 0.5'),
  })
  const { agents, problems } = readAgents(folder)
  assert.deepEqual(Object.keys(agents), ['a-good', 'z-good'])
  assert.deepEqual(
    [agents['a-good']!.description, agents['z-good']!.maxSteps, agents['z-good']!.maxCost],
    ['Good.', 7, 0.5],
  )
  assert.equal(problems.length, 9)
})

test('links, pipes and folders are not read, and a missing folder has no agents', () => {
  const folder = folderOf({ 'real.md': file('description: Real.') })
  const secret = join(root, 'secret.md')
  writeFileSync(secret, file('name: secret\ndescription: x'))
  symlinkSync(secret, join(folder, 'link.md'))
  mkdirSync(join(folder, 'folder.md'))
  execFileSync('mkfifo', [join(folder, 'pipe.md')])
  const { agents, problems } = readAgents(folder, join(root, 'nowhere'))
  assert.deepEqual(Object.keys(agents), ['real'])
  assert.deepEqual(problems.map(({ message }) => message).toSorted(), [
    'it is a link, and links are not followed',
    'it is not a regular file',
  ])
})

test('every definition is the same after writing and reading it', () => {
  const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,20}$/)
  const word = fc
    .string({ minLength: 1, maxLength: 60, unit: 'grapheme' })
    .filter((text) => text.trim() !== '' && text.trim() === text)
  const tools = fc
    .array(fc.stringMatching(/^[A-Za-z_*][\w*-]{1,12}$/), { maxLength: 4 })
    .filter((list) => list.join() !== '*')
  const definition = fc.record(
    {
      name,
      description: word,
      instructions: fc.string({ maxLength: 200 }).map((text) => text.replaceAll('\r', '').trim()),
      tools,
      disallowedTools: tools,
      model: name.filter((text) => text !== 'inherit'),
      maxSteps: fc.nat(),
      maxCost: fc.double({ min: 0, max: 100, noNaN: true }),
    },
    { requiredKeys: ['name', 'description', 'instructions'] },
  )
  fc.assert(
    fc.property(definition, (made) => {
      const { definition: read } = fromAgentMarkdown(toAgentMarkdown(made))
      assert.deepEqual({ ...read }, { ...made })
    }),
    { numRuns: 300 },
  )
})
