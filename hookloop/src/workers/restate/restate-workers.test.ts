import assert from 'node:assert/strict'
import { after, afterEach, suite, test } from 'node:test'
import { readStoredSession } from '../../sessions/log/read-session.ts'
import { engines, freePort, TestFleet, until } from '../fleet.fixture.ts'

// What only Restate has: versions of deployments, and invocations that an operator can cancel.

if (engines.includes('restate'))
  suite('workers on restate', async () => {
    const fleet = await TestFleet.start('restate', { agent: 'worker' })
    afterEach(() => fleet.killAll())
    after(() => fleet.stop())

    test('a run that workers of an old version have begun is finished by those of a new version', async () => {
      const old = await fleet.worker({ HOLD: '1' })
      const sent = await fleet.sessions.send('deployed', 'deployed')
      await until('the next call', () => fleet.calls().length > 0)
      await fleet.worker({ VERSION: '2' }, { port: await freePort() })
      assert.equal(await fleet.drain(old), 0)
      assert.equal((await sent.result()).status, 'completed')
      const steps = fleet.calls().map(({ step }) => step)
      assert.deepEqual(steps, [0, 1, 2, 3])
      assert.equal(new Set(fleet.calls().map(({ pid }) => pid)).size, 2)
      const { state } = await readStoredSession(fleet.store, 'deployed')
      assert.equal(state!.systemPrompt, 'Version 1.', 'a session keeps its prompt')
    })

    test('an invocation that is cancelled in Restate stops its run', async () => {
      await fleet.worker({ TOOL_MS: '60000' }, { port: await freePort() })
      const before = fleet.calls().length
      const sent = await fleet.sessions.send('cancelled', 'cancelled')
      await until('the next call', () => fleet.calls().length > before)
      const { admin } = fleet.restate!
      const found = await fetch(new URL('/query', admin), {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify({ query: `SELECT id FROM sys_invocation WHERE target_service_key = 'cancelled'` }),
      })
      const { rows } = (await found.json()) as { readonly rows: readonly { readonly id: string }[] }
      const cancelled = await fetch(new URL(`/invocations/${rows[0]!.id}/cancel`, admin), { method: 'PATCH' })
      assert.equal(cancelled.status, 202)
      assert.equal((await sent.result()).status, 'cancelled')
    })
  })
