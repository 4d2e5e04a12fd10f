import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { z } from 'zod'
import type { Use } from '../../core/agent/capability.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import type { JsonObject } from '../../values/json.ts'
import type { Answer } from '../../core/state/tool-call.ts'
import { guard } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { answerApproval, listApprovals } from './approvals.ts'
import { dyingStore, storeOf } from './dying-store.fixture.ts'
import { historyOf } from '../log/history.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { encodeLine, noLine } from '../log/session-log.ts'
import type { SessionStore } from '../stores/store.ts'

type Options = { readonly to?: readonly string[]; readonly use?: readonly Use[]; readonly expiresInMs?: number }

/** An agent that pays, after asking about each payment, and what it paid. */
function cashier(store: SessionStore, { to = ['ann'], use = [], expiresInMs }: Options = {}) {
  const paid: string[] = []
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ to: z.string() }),
    ask: true,
    execute: ({ to }) => {
      paid.push(to)
      return `paid ${to}`
    },
  })
  const model = scriptedModel(({ messages }) => {
    if (messages.at(-1)?.role === 'tool') return 'Done.'
    return { toolCalls: to.map((each) => ({ name: 'pay', args: { to: each } })) }
  })
  const asks = approval({ answer: 'suspend', ...(expiresInMs !== undefined && { expiresInMs }) })
  return { paid, model, agent: createAgent({ model, store, use: [pay, asks, ...use] }) }
}

/** A session that waits, as another process finds it. */
async function waiting(options: Options = {}) {
  const store = memoryStore()
  await cashier(store, options).agent.run('Pay.', { session: 's' })
  const pending = await listApprovals(store)
  const answer = (given: Answer, at = 0, now?: number) =>
    answerApproval(store, { session: 's', approval: pending[at]!.id, answer: given, ...(now !== undefined && { now }) })
  return { store, pending, answer, ...cashier(store, options) }
}

async function resultsIn(store: SessionStore): Promise<readonly (readonly [string, unknown])[]> {
  const { state } = historyOf((await store.read('s'))!.lines)
  return state!.execution!.steps.at(0)!.toolExecutions.map(({ status, output }) => [status, output] as const)
}

test('D06: every question that waits is listed with its session, until it is answered', async () => {
  const store = memoryStore()
  await cashier(store, { to: ['ann', 'bob'] }).agent.run('Pay.', { session: 'one' })
  await cashier(store, { to: ['eve'] }).agent.run('Pay.', { session: 'two' })
  const listed = async () =>
    (await listApprovals(store)).map(({ session, toolCall, message }) => [session, toolCall.args['to'], message])
  const all = [
    ['one', 'ann', 'Run "pay"?'],
    ['one', 'bob', 'Run "pay"?'],
    ['two', 'eve', 'Run "pay"?'],
  ]
  assert.deepEqual((await listed()).toSorted(byText), all)
  const [ann] = (await listApprovals(store)).filter(({ session }) => session === 'one')
  await answerApproval(store, { session: 'one', approval: ann!.id, answer: 'allow' })
  assert.deepEqual((await listed()).toSorted(byText), all.slice(1))
})

test('the other approvals of a run that was interrupted while it resumed with one answer are listed', async () => {
  const { store, pending } = await waiting({ to: ['ann', 'bob'] })
  const dying = dyingStore(store, { at: 1, stored: true })
  const { agent } = cashier(dying, { to: ['ann', 'bob'] })
  await Promise.race([agent.resume('s', { answers: { [pending[0]!.id]: 'allow' } }), dying.died])
  const listed = async () => (await listApprovals(store)).map(({ id }) => id)
  const [whileLocked] = [await listed()]
  await store.close() // releases the lock, as the end of the process does
  assert.deepEqual([whileLocked, await listed()], [[pending[1]!.id], [pending[1]!.id]])
})

test('D11: a head that is damaged hides no question of the others', async () => {
  const { store } = await waiting()
  for (const [i, pending] of [5, 'x', null, [null, 1, {}, { toolCall: {} }], { length: 1 }].entries()) {
    const writer = await store.open(`bad${i}`, { create: true })
    await writer.append([], { head: { status: 'suspended', pending } })
    await writer.release()
  }
  assert.deepEqual(
    (await listApprovals(store)).map(({ session }) => session),
    ['s'],
  )
})

test('D06: a yes lets the call run, once; who said so is written down', async () => {
  const { store, pending, agent, paid } = await waiting()
  await answerApproval(store, { session: 's', approval: pending[0]!.id, answer: 'allow', by: 'eve' })
  const run = await agent.resume('s')
  assert.deepEqual([run.status, paid], ['completed', ['ann']])
  const { records } = historyOf((await store.read('s'))!.lines)
  assert.ok(records.some((record) => record.t === 'answer' && record.by === 'eve'))
})

test('D06: a blocked call is not executed, and the model receives the reason', async () => {
  const { store, answer, agent, paid } = await waiting()
  await answer({ block: 'not today' })
  await agent.resume('s')
  assert.deepEqual([paid, await resultsIn(store)], [[], [['blocked', 'not today']]])
})

test('a yes with other arguments runs with those', async () => {
  const { answer, agent, paid } = await waiting()
  await answer({ allow: { to: 'bob' } })
  await agent.resume('s')
  assert.deepEqual(paid, ['bob'])
})

test('an allow with arguments that do not fit the tool runs nothing and does not end the session', async () => {
  const { store, answer, agent, paid } = await waiting()
  await answer({ allow: { to: 17 } })
  const run = await agent.resume('s')
  const [[status, output]] = (await resultsIn(store)) as [[string, string]]
  assert.deepEqual([run.status, paid, status], ['completed', [], 'failed'])
  assert.match(output, /do not fit the tool "pay"/)
})

test('a yes cannot overrule a guard that came later', async () => {
  const { store, answer, paid } = await waiting()
  await answer('allow')
  const never = guard('beforeToolUse', (ctx) => ctx.block('never'), { name: 'never' })
  const late = cashier(store, { use: [never] })
  await late.agent.resume('s')
  assert.deepEqual([paid, late.paid, await resultsIn(store)], [[], [], [['blocked', 'never']]])
})

suite('D07: is rejected, and nothing runs:', () => {
  const used = { code: 'ANSWER_USED' }

  test('a second answer, whatever it is and however it comes', async () => {
    const { answer, agent, paid, pending, store } = await waiting()
    await answer({ block: 'no' })
    const { lines } = (await store.read('s'))!
    await assert.rejects(answer('allow'), used)
    await assert.rejects(agent.resume('s', { answers: { [pending[0]!.id]: 'allow' } }), used)
    assert.deepEqual([paid, (await store.read('s'))!.lines], [[], lines])
  })

  for (const approval of ['', 'nonsense', '__proto__', 'constructor', 'toString']) {
    test(`an answer to "${approval}", which is not pending`, async () => {
      const { store, agent } = await waiting()
      await assert.rejects(answerApproval(store, { session: 's', approval, answer: 'allow' }), {
        code: 'ANSWER_UNKNOWN',
      })
      await assert.rejects(agent.resume('s', { answers: { [approval]: 'allow' } }), { code: 'ANSWER_UNKNOWN' })
    })
  }

  test('an answer to the question of another session', async () => {
    const { store, pending } = await waiting()
    await cashier(store).agent.run('Pay.', { session: 'other' })
    await assert.rejects(answerApproval(store, { session: 'other', approval: pending[0]!.id, answer: 'allow' }), {
      code: 'ANSWER_UNKNOWN',
    })
  })

  test('an answer to a session that is not there', async () => {
    await assert.rejects(answerApproval(memoryStore(), { session: 'none', approval: 'x', answer: 'allow' }), {
      code: 'SESSION_UNKNOWN',
    })
  })

  for (const given of ['suspend', 'yes', true, null, {}, { allow: true }, { block: 1 }]) {
    test(`${JSON.stringify(given)}, which is not an answer`, async () => {
      const { answer } = await waiting()
      await assert.rejects(answer(given as Answer), { code: 'ANSWER_INVALID' })
    })
  }

  test('an allow after the expiry; a block is accepted', async () => {
    const { answer, pending, agent, paid } = await waiting({ expiresInMs: 1_000 })
    const { expiresAt } = pending[0]!
    await assert.rejects(answer('allow', 0, expiresAt), { code: 'ANSWER_EXPIRED' })
    await assert.rejects(answer({ allow: { to: 'bob' } }, 0, expiresAt! + 1), { code: 'ANSWER_EXPIRED' })
    await answer({ block: 'late, but no' }, 0, expiresAt! + 1)
    await agent.resume('s')
    assert.deepEqual(paid, [])
  })

  test('an answer about arguments that were changed in the store', async () => {
    const { store, pending } = await waiting()
    const { lines } = (await store.read('s'))!
    const forged = lines.map((line) => line.replaceAll('"to":"ann"', '"to":"eve"'))
    let end = noLine
    const onlyCall = lines.map((line) => {
      const {
        seq: _seq,
        sum: _sum,
        ...record
      } = JSON.parse(line.replace(/"args":\{"to":"ann"\}/, '"args":{"to":"eve"}')) as JsonObject
      const encoded = encodeLine(record, end)
      end = encoded.end
      return encoded.line
    })
    for (const [changed, code] of [
      [forged, 'SESSION_CORRUPT'],
      [onlyCall, 'APPROVAL_MISMATCH'],
    ] as const) {
      const other = await storeOf('s', changed)
      const { agent, paid } = cashier(other)
      const approval = pending[0]!.id
      await assert.rejects(answerApproval(other, { session: 's', approval, answer: 'allow' }), { code })
      await assert.rejects(agent.resume('s', { answers: { [approval]: 'allow' } }), { code })
      assert.deepEqual([paid, (await other.read('s'))!.lines], [[], changed])
    }
  })
})

test('an allow that was in time is valid when the run resumes later', async () => {
  const { answer, pending, agent, paid } = await waiting({ expiresInMs: 20 })
  await answer('allow', 0, pending[0]!.expiresAt! - 1)
  while (Date.now() < pending[0]!.expiresAt!) await new Promise((resolve) => setTimeout(resolve, 5))
  assert.deepEqual([(await agent.resume('s')).status, paid], ['completed', ['ann']])
})

test('a session that is locked by a run rejects answers', async () => {
  const { store, answer } = await waiting()
  const writer = await store.open('s')
  await assert.rejects(answer('allow'), { code: 'SESSION_BUSY' })
  await writer.release()
  await answer('allow')
})

test('an answer waits for a session that is locked for as long as waitMs says', async () => {
  const { store, pending } = await waiting()
  const answer = (waitMs: number) =>
    answerApproval(store, { session: 's', approval: pending[0]!.id, answer: 'allow', waitMs })
  const writer = await store.open('s')
  await assert.rejects(answer(0), { code: 'SESSION_BUSY' })
  const answering = answer(600_000)
  await writer.release()
  await answering
})

test('an answer with arguments that are not JSON is rejected', async () => {
  const { answer } = await waiting()
  await assert.rejects(answer({ allow: { to: new Date(0) as never } }), { code: 'ANSWER_INVALID' })
})

function byText(a: unknown, b: unknown): number {
  return String(a) < String(b) ? -1 : 1
}

suite('an approval of a tool that has changed since it was shown', () => {
  const shown = {
    description: 'Pays.',
    input: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] } as JsonObject,
  }
  const payer = (store: SessionStore, paid: string[], change: Partial<typeof shown> = {}) => {
    const pay = tool({ name: 'pay', ...shown, ...change, ask: true, execute: ({ to }) => void paid.push(to as string) })
    const model = scriptedModel(({ messages }) =>
      messages.length === 1 ? { toolCalls: [{ name: 'pay', args: { to: 'ann' } }] } : 'Done.',
    )
    return createAgent({ model, store, use: [pay, approval('suspend')] })
  }

  for (const [what, change] of [
    ['another description', { description: 'Pays everyone.' }],
    ['another schema', { input: { type: 'object' } }],
  ] as const) {
    for (const how of ['answerApproval', 'resume'] as const) {
      test(`does not run the call, and the approver is asked again: ${what}, ${how}`, async () => {
        const store = memoryStore()
        const paid: string[] = []
        await payer(store, paid).run('Pay.', { session: 's' })
        const [before] = await listApprovals(store)
        const changed = payer(store, paid, change)
        const answers = { [before!.id]: 'allow' } as const
        if (how === 'answerApproval')
          await answerApproval(store, { session: 's', approval: before!.id, answer: 'allow' })
        const run = await changed.resume('s', how === 'resume' ? { answers } : {})
        assert.deepEqual([run.status, paid], ['suspended', []])
        const [again] = await listApprovals(store)
        assert.notDeepEqual([again!.id, again!.tool], [before!.id, before!.tool])
        await answerApproval(store, { session: 's', approval: again!.id, answer: 'allow' })
        assert.deepEqual([(await changed.resume('s')).status, paid], ['completed', ['ann']])
      })
    }
  }

  test('is the same approval if the tool is the same', async () => {
    const store = memoryStore()
    const paid: string[] = []
    await payer(store, paid).run('Pay.', { session: 's' })
    const [asked] = await listApprovals(store)
    const run = await payer(store, paid).resume('s', { answers: { [asked!.id]: 'allow' } })
    assert.deepEqual([run.status, paid], ['completed', ['ann']])
  })
})
