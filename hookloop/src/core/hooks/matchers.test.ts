import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentState } from '../state/agent-state.ts'
import type { Json } from '../../values/json.ts'
import type { AgentError } from '../../errors.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { fire } from '../../testing/fire.ts'
import { guard, hook, observe } from './hook.ts'
import { all, any, hasMetadata, not, stepType, toolName, type Matchable, type Matcher } from './matchers.ts'
import type { NamePattern } from './patterns.ts'

function callOf(name: string): Matchable {
  return { trigger: 'beforeToolUse', state: AgentState.create({ agentId: 'a' }), toolCall: { name } }
}

function withMetadata(key: string, value: Json): Matchable {
  return { trigger: 'beforeStep', state: AgentState.create({ agentId: 'a' }).withMetadata(key, value) }
}

const patterns: readonly (readonly [NamePattern, string, boolean])[] = [
  ['bash', 'bash', true],
  ['bash', 'bash2', false],
  ['bash', 'Bash', false],
  ['ba.h', 'bash', false],
  ['', '', true],
  ['', 'bash', false],
  ['*', 'anything', true],
  ['*', '', true],
  ['file_*', 'file_read', true],
  ['file_*', 'file_', true],
  ['file_*', 'profile_read', false],
  ['*_read', 'file_read', true],
  ['*_read', 'file_reader', false],
  ['a*b*c', 'a1b2c', true],
  ['a*b*c', 'acb', false],
  ['**a**', 'bab', true],
  ['[a-z]+', 'abc', false],
  [/^file_/, 'file_read', true],
  [/^file_/, 'profile_read', false],
  [/read|write/, 'file_write', true],
  [/^READ$/, 'read', false],
  [/^READ$/i, 'read', true],
  [/^a.c$/, 'a\nc', false],
  [/^a.c$/s, 'a\nc', true],
  [/^b$/, 'a\nb', false],
  [/^b$/m, 'a\nb', true],
  [/^\p{Lu}+$/u, 'ÄÖ', true],
  [/read/g, 'read read', true],
]

for (const [pattern, name, expected] of patterns) {
  test(`${String(pattern) || 'an empty text'} ${expected ? 'matches' : 'does not match'} ${JSON.stringify(name)}`, () => {
    assert.equal(toolName(pattern)(callOf(name)), expected)
  })
}

test('a wildcard matches what a regular expression with .* in its place matches', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '.', '\n'), maxLength: 12 })
  const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '.', '*'), maxLength: 8 })
  fc.assert(
    fc.property(pattern, text, (wildcard, name) => {
      const source = wildcard.replaceAll('.', '\\.').replaceAll(/\*+/g, '.*')
      assert.equal(toolName(wildcard)(callOf(name)), new RegExp(`^${source}$`, 's').test(name))
    }),
    { numRuns: 500 },
  )
})

const refused = [/(?=a)b/, /(?!a)b/, /(?<=a)b/, /(?<!a)b/, /(a)\1/, /a{1001}/, /(((a{100}){100}){100})/]

for (const pattern of refused) {
  test(`${String(pattern)} cannot be matched in linear time and is rejected`, () => {
    const refusal = { code: 'HOOK_INVALID_PATTERN', value: String(pattern) }
    const never = guard('beforeToolUse', (ctx) => ctx.block('never'), { tool: pattern })
    assert.throws(() => toolName(pattern), refusal)
    assert.throws(() => createAgent({ model: scriptedModel([]), use: [never] }), refusal)
  })
}

const foreign = [
  /(?<x>a)\k<x>/,
  /ad/y,
  /^[[a-z]&&[aeiou]]$/v,
  /^[^]$/,
  ...['^\\Abc', '\\Qa\\E', '^\\u{61}$', '^\\pL$', '[]'].map((source) => new RegExp(source)),
]

for (const pattern of foreign) {
  test(`${String(pattern)} is rejected, or matches the same as in JavaScript`, () => {
    let matches: Matcher
    try {
      matches = toolName(pattern)
    } catch (error) {
      return assert.equal((error as AgentError).code, 'HOOK_INVALID_PATTERN')
    }
    const names = ['a', 'aa', 'b', 'e', 'bc', 'Abc', 'read', 'QaE', 'ak<x>', 'uuu']
    const expected = names.filter((name) => new RegExp(pattern.source, pattern.flags).test(name))
    assert.deepEqual(
      names.filter((name) => matches(callOf(name))),
      expected,
    )
  })
}

/** Runs one call. It never ends if a backtracking engine matches the name. */
async function callHostile(name: string, use: readonly Use[]): Promise<Run> {
  const model = scriptedModel([{ toolCalls: [{ name }] }, 'done'])
  const agent = createAgent({ model, use })
  return agent.run('go')
}

const evil = `${'a'.repeat(40)}b`
const evilTool = tool({ name: evil, description: '', input: { type: 'object' }, execute: () => 'ran' })
const hostile: readonly NamePattern[] = [/^(a+)+$/, /^(a|a)*$/, /(.*a){25}$/, /^(a|aa)+$/, '*a*a*a*a*a*a*a*a*a*c']

for (const pattern of hostile) {
  test(`${String(pattern)} does not hang on the name of a tool`, async () => {
    const never = guard('beforeToolUse', (ctx) => ctx.block('never'), { tool: pattern })
    const run = await callHostile(evil, [evilTool, never])
    assert.equal(run.state.execution!.steps.at(0)!.toolExecutions[0]!.status, 'ok')
  })

  test(`${String(pattern)} does not hang on an unknown tool name`, async () => {
    const invented = `${'a'.repeat(50_000)}b`
    const seen: string[] = []
    const run = await callHostile(invented, [
      guard('beforeToolUse', (ctx) => ctx.block('never'), { tool: pattern }),
      hook('afterToolUse', (ctx) => ctx.withOutput('matched'), { when: toolName(pattern) }),
      observe('afterToolUse', (ctx) => void seen.push(ctx.toolExecution.status)),
    ])
    const [execution] = run.state.execution!.steps.at(0)!.toolExecutions
    assert.deepEqual([execution!.status, execution!.output === 'matched', seen], ['failed', false, ['failed']])
  })
}

test('a hook for an unknown tool name never fires for that call', async () => {
  const fired: string[] = []
  const watch = observe(['beforeToolUse', 'afterToolUse'], (ctx) => void fired.push(ctx.trigger), { tool: 'ghost*' })
  await callHostile('ghost_write', [watch])
  assert.deepEqual(fired, [])
})

test('stepType matches the current step, and before it the previous one', async () => {
  const seen: string[] = []
  const note = (word: string) => (): void => void seen.push(word)
  const model = scriptedModel([{ toolCalls: [{ name: 'x' }] }, { error: 'down' }, 'done'])
  const use = [
    hook('onError', (ctx) => ctx.ignore()),
    observe('afterStep', note('tools'), { when: stepType('toolExecution') }),
    observe('afterStep', note('error'), { when: stepType('error') }),
    observe('afterStep', note('final'), { when: stepType('finalResponse') }),
    observe('beforeStep', note('after tools'), { when: stepType('toolExecution') }),
  ]
  await createAgent({ model, use }).run('go')
  assert.deepEqual(seen, ['tools', 'after tools', 'error', 'final'])
})

test('hasMetadata matches a key, or a key with an equal value', () => {
  const ctx = withMetadata('user', { role: 'admin', id: 7 })
  const looks: readonly Matcher[] = [
    hasMetadata('user'),
    hasMetadata('user', { id: 7, role: 'admin' }),
    hasMetadata('user', { role: 'admin' }),
    hasMetadata('role'),
    hasMetadata('constructor'),
  ]
  assert.deepEqual(
    looks.map((matches) => matches(ctx)),
    [true, true, false, false, false],
  )
})

test('hasMetadata distinguishes null from a missing key', () => {
  assert.deepEqual(
    [hasMetadata('x', null)(withMetadata('x', null)), hasMetadata('x', null)(withMetadata('y', null))],
    [true, false],
  )
})

test('matchers combine in when', async () => {
  const deploy = guard('beforeToolUse', (ctx) => ctx.block('Admins only.'), {
    when: all(any(toolName('deploy'), toolName('release_*')), not(hasMetadata('role', 'admin'))),
  })
  const decide = async (name: string, role: string): Promise<string | undefined> =>
    (await fire(deploy, 'beforeToolUse', { toolCall: { name }, metadata: { role } })).decision
  const decisions = [
    decide('deploy', 'user'),
    decide('release_v1', 'user'),
    decide('deploy', 'admin'),
    decide('ls', 'user'),
  ]
  assert.deepEqual(await Promise.all(decisions), ['block', 'block', undefined, undefined])
})
