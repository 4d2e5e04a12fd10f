import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { explain } from '../core/explain/explain.ts'
import { tool } from '../core/agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import { hook, observe } from '../core/hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { exportSession } from '../sessions/session/export-session.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import { sqliteStore } from '../sessions/stores/sqlite-store.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import { recordEvents } from '../testing/record-events.ts'
import { inMemory } from '../tracing/in-memory.fixture.ts'
import { guards } from './guards.ts'
import { redactSecrets } from './redact-secrets.ts'

const anything = { type: 'object' } as const
const folder = mkdtempSync(join(tmpdir(), 'hookloop-secrets-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const random = 'Zq81Kd0fWm4TnX27Lr9c'
const secrets = [
  `sk-proj-${random}`,
  `sk-ant-api03-${random}_x-${random}`,
  `ghp_${random}${random}`,
  ['AKIA', 'ABCDEFGH12345678'].join(''),
  `AIzaSy${random}${random}`,
  `xoxb-${random}`,
  `eyJhbGciOiJIUzI1NiJ9.${random}.${random}`,
  'hunter2-of-ours',
]
const key = `-----BEGIN RSA PRIVATE KEY-----\n${random.repeat(20)}\n-----END RSA PRIVATE KEY-----`
const bearer = `Authorization: Bearer ${random}${random}`
const address = `postgres://admin:pw-${random}@db.example/x`
const all = [...secrets, key, bearer, address]
/** No artifact may contain any of these. */
const canaries = [...secrets, random]

/** Runs an agent whose tools return secrets in every possible way. */
async function spill(store: SessionStore, more: Parameters<typeof createAgent>[0]['use'] = []) {
  const ways = {
    text: () => all.join('\n'),
    json: () => ({ lines: all, nested: { [secrets[0]!]: { value: key } } }),
    throws: () => {
      throw new Error(all.join(' '))
    },
    late: async () => (await soon(), { all }),
    long: () => `${'x'.repeat(16_370)}${secrets[0]}${'y'.repeat(200_000)}`, // where it is cut to size
  }
  const tools = Object.entries(ways).map(([name, give]) =>
    tool({
      name,
      description: name,
      input: anything,
      execute: (_args, { progress }) => {
        progress({ at: all })
        return give()
      },
    }),
  )
  const model = scriptedModel(({ messages }) => {
    if (messages.at(-1)?.role === 'user') return { toolCalls: Object.keys(ways).map((name) => ({ name })) }
    return `I read ${JSON.stringify(messages.at(-1))}`
  })
  const again = hook('aroundToolUse', async (_ctx, next) => next(), { name: 'around', tool: 'json' })
  const limits = guards({ maxTokens: null })
  const agent = createAgent({ model, store, use: [...tools, again, limits, ...more] })
  const events = await recordEvents(agent.stream(`Use ${all.join(' and ')}.`, { session: 's' }))
  return { agent, events, model }
}

const leaks = (text: string): readonly string[] => canaries.filter((canary) => text.includes(canary))

test('D17: secrets in tool results and user input are in no session, event, trace, export or request', async () => {
  const place = join(folder, 'redacted')
  const store = sqliteStore(`${place}.db`)
  const otel = inMemory({ content: true })
  const seen: unknown[] = []
  const watch = observe(['onUserInput', 'beforeInference', 'afterToolUse'], (ctx) =>
    seen.push('toolExecution' in ctx ? ctx.toolExecution : 'input' in ctx ? ctx.input : ctx.request.messages),
  )
  const use = [redactSecrets({ also: ['hunter2-of-ours', undefined] }), otel.tracing, watch]
  const { agent, events, model } = await spill(store, use)
  assert.equal(events.run.status, 'completed')
  const run = await agent.run(`Use ${all.join()}`)
  const artefacts = {
    events: JSON.stringify(events.events),
    saved: JSON.stringify(run),
    requests: JSON.stringify(model.requests),
    explained: explain(run),
    exported: await exportSession(store, 's', { redact: false }),
    spans: JSON.stringify(otel.spans().map(({ attributes, events: reported, name }) => [name, attributes, reported])),
    hooks: JSON.stringify(seen),
  }
  for (const [what, text] of Object.entries(artefacts)) {
    assert.ok(text.length > 200, what)
    assert.deepEqual(leaks(text), [], what)
  }
  await store.close()
  const stored = filesUnder(folder).filter((file) => file.startsWith(place))
  assert.ok(stored.length >= 1, stored.join())
  for (const file of stored) assert.deepEqual(leaks(readFileSync(file, 'latin1')), [], file)
})

test('D17: secrets are stored without redactSecrets, and are not in an export', async () => {
  const store = memoryStore()
  const { events } = await spill(store)
  assert.ok(leaks(JSON.stringify(events.events)).length > 5)
  const exported = await exportSession(store, 's', { redact: ['hunter2-of-ours'] })
  assert.deepEqual(leaks(exported), [])
})

test('D17: secrets are recognized by their shape, and similar text is not redacted', async () => {
  const harmless = [
    'const token = getToken()',
    'pk_customers_orders_pkey and api_gateway_configuration, sk_learn_is_not_a_key',
    'The bearer of good news, Bearer authentication, bearer-token-based-authentication',
    'https://example.com:8080/a?b=c@d and git@github.com:org/repo.git',
    'password: required',
    '0123456789abcdef0123456789abcdef01234567',
  ]
  const model = scriptedModel([{ toolCalls: [{ name: 'read' }] }, 'Done.'])
  const read = tool({ name: 'read', description: 'Reads.', input: anything, execute: () => harmless })
  const run = await createAgent({ model, use: [read, redactSecrets()] }).run(harmless.join('\n'))
  assert.deepEqual(run.state.lastStep && run.state.execution!.steps.at(0)!.toolExecutions[0]!.output, harmless)
  const said = run.state.messages.at(0)!.content[0]!
  assert.equal(said.type === 'text' && said.text, harmless.join('\n'))
})

test('D17: secrets are redacted in linear time, whatever the text repeats', async () => {
  const repeated = [
    'sk-',
    'eyJ-',
    'eyJaaaaaaaaaaaa.',
    '://a:',
    'Bearer ',
    '-----BEGIN PRIVATE KEY-----',
    'AKIA',
    'xoxb-a',
  ]
  const model = scriptedModel([{ toolCalls: [{ name: 'read' }] }, 'Done.'])
  const read = tool({
    name: 'read',
    description: 'Reads.',
    input: anything,
    execute: () => repeated.map((each) => each.repeat(100_000 / each.length)),
  })
  await createAgent({ model, use: [read, redactSecrets()] }).run('Go.')
})

test('D17: secrets are found by valid rules only', () => {
  assert.throws(() => redactSecrets({ also: [7 as never] }), { code: 'AGENT_INVALID_OPTION' })
  assert.throws(() => redactSecrets({ patterns: [] } as never), { code: 'AGENT_INVALID_OPTION' })
})

function filesUnder(path: string): readonly string[] {
  return readdirSync(path).flatMap((name) => {
    const inner = join(path, name)
    return statSync(inner).isDirectory() ? filesUnder(inner) : [inner]
  })
}

test('a key that is split over progress updates is redacted, and every update is emitted before the call ends', async () => {
  const split = (text: string, size: number): readonly string[] => text.match(new RegExp(`[^]{1,${size}}`, 'g'))!
  for (const size of [1, 4, 9, 30]) {
    const pieces = split(all.join('\n'), size)
    const talks = tool({
      name: 'talks',
      description: 'Talks.',
      input: anything,
      execute: async (_args, { progress }) => {
        for (const piece of pieces) progress(piece)
        await soon()
        for (const text of pieces) progress({ stream: 'stdout', text })
        if (size === 9) throw new Error('It failed.')
        return 'done'
      },
    })
    const model = scriptedModel([{ toolCalls: [{ name: 'talks' }] }, 'Done.'])
    const agent = createAgent({ model, use: [talks, redactSecrets({ also: ['hunter2-of-ours'] })] })
    const events = await recordEvents(agent.stream('Go.'))
    const updates = events.of('toolProgress').map(({ update }) => update)
    assert.equal(updates.length, 2 * pieces.length)
    const strings = updates.filter((update) => typeof update === 'string').join('')
    const texts = updates.flatMap((update) => (typeof update === 'string' ? [] : [(update as { text: string }).text]))
    for (const shown of [strings, texts.join('')]) {
      assert.deepEqual(leaks(shown), [])
      assert.equal(shown.split('[redacted]').length, all.length + 1, shown)
      assert.match(shown, /postgres:\/\/\[redacted\]@db\.example\/x$/)
    }
    const types = events.events.map(({ type }) => type)
    assert.ok(types.lastIndexOf('toolProgress') < types.indexOf('toolFinished'))
  }
})
