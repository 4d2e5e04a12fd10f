import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, suite, test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { readHistory } from '../../sessions/log/read-session.ts'
import { freePort } from '../../system/network/free-port.fixture.ts'
import { engines, TestFleet, until } from '../fleet.fixture.ts'
import { Network } from '../network.fixture.ts'
import { fleet as fleetOnRestate } from './fleet.ts'
import { noRestate, startRestate } from './restate.fixture.ts'
import { serveSessions } from './serve-sessions.ts'

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
      const { state } = (await readHistory(fleet.store, 'deployed')).reader
      assert.equal(state!.systemPrompt, 'Version 1.', 'a session keeps its prompt')
    })

    test('a worker that joins shares the turns of workers that have served before', async () => {
      const first = await fleet.worker({}, { port: await freePort() })
      const greet = async (id: string): Promise<void> => {
        const sent = await fleet.sessions.send(id, 'Hi', { agent: 'greeter' })
        assert.equal((await sent.result()).status, 'completed')
      }
      // Enough for a connection from each partition of Restate.
      await Promise.all(Array.from({ length: 200 }, (_, i) => greet(`before-${i}`)))
      const second = await fleet.worker({}, { port: first.port })
      for (let i = 0; i < 60; i++) await greet(`after-${i}`)
      const turns = second.reports.filter(({ type }) => type === 'ended').length
      assert.ok(turns >= 10, `The second of two workers has had ${turns} of 60 turns.`)
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

    for (const cut of ['reset', 'silence'] as const) {
      const how = cut === 'silence' ? 'without an error' : 'after a reset'
      test(`a run is driven to its end once, and no call is repeated, when Restate and its worker lose each other ${how}`, async () => {
        const port = await freePort()
        const network = await Network.to(port)
        const worker = await fleet.worker({ HOLD: '1' }, { port, host: network.host })
        const reported = (wanted: string): number => worker.reports.filter(({ type }) => type === wanted).length
        const calls = () => fleet.calls().filter(({ session }) => session === cut)
        const sent = await fleet.sessions.send(cut, cut)
        await until('the first call', () => calls().length === 1)
        if (cut === 'reset') {
          network.reset()
          await until('Restate calls again', () => reported('started') === 2)
          worker.kill('SIGURG') // its call ends
        } else {
          network.silence()
          worker.kill('SIGURG')
          await until('the run has ended, and Restate does not know', () => reported('ended') === 1)
          network.replace()
        }
        const { status, text } = await sent.result()
        assert.deepEqual([status, text], ['completed', 'Done.'])
        assert.deepEqual(await fleet.outcome(cut), { status, ends: 1, results: ['ok', 'ok', 'ok', 'ok'] })
        assert.deepEqual([calls().length, new Set(calls().map(({ key }) => key)).size], [4, 4])
        assert.ok(worker.reports.every((report) => !('takenOver' in report)))
        network.close()
      })
    }

    test('a worker with the public key of Restate accepts calls that it has signed, and no others', async () => {
      const { publicKey, privateKey } = generateKeyPairSync('ed25519')
      const file = join(mkdtempSync(join(tmpdir(), 'hookloop-key-')), 'key.pem')
      writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }))
      const restate = await startRestate({ RESTATE_REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE: file })
      const port = await freePort()
      const store = memoryStore()
      const worker = await serveSessions({
        agent: createAgent({ model: scriptedModel(() => 'Hello.'), store }),
        port,
        host: '127.0.0.1',
        admin: restate.admin,
        address: `http://127.0.0.1:${port}`,
        identityKeys: [identityOf(publicKey)],
      })
      try {
        const sent = await fleetOnRestate({ ingress: restate.ingress, store }).send('signed', 'Hi')
        assert.equal((await sent.result()).text, 'Hello.')
        for (const path of ['/discover', '/invoke/hookloop/drive']) assert.equal(await statusOf(port, path), 401)
      } finally {
        await worker.close()
        await restate.stop()
      }
    })
  })

test('a worker needs the admin API of Restate only to register', { skip: noRestate }, async () => {
  const restate = await startRestate()
  const agent = createAgent({ model: scriptedModel(() => 'Hello.'), store: memoryStore() })
  const port = await freePort()
  const how = { agent, host: '127.0.0.1', admin: restate.admin, onLog: () => undefined }
  const worker = await serveSessions({ ...how, port, address: `http://127.0.0.1:${port}` })
  await restate.stop()
  await worker.check() // it is ready
  await worker.close()
  await assert.rejects(serveSessions({ ...how, port: 0 }), {
    code: 'STORE_FAILED',
    message: /^Restate at 127\.0\.0\.1:\d+ cannot be reached: .*ECONNREFUSED/,
  })
})

test('keys of another form, and an empty list of keys, are rejected', async () => {
  const agent = createAgent({ model: scriptedModel(() => 'Hello.'), store: memoryStore() })
  for (const identityKeys of [
    [],
    [''],
    ['publickeyv1_'],
    ['publickeyv1_abc'],
    ['secret'],
    'publickeyv1_abc' as unknown as [],
  ])
    await assert.rejects(serveSessions({ agent, port: 0, identityKeys }), { code: 'AGENT_INVALID_OPTION' })
})

async function statusOf(port: number, path: string): Promise<unknown> {
  const connection = connect(`http://127.0.0.1:${port}`)
  try {
    const call = connection.request({ ':method': 'POST', ':path': path, 'content-type': 'application/json' })
    const [headers] = (await once(call.end('{}'), 'response')) as [{ readonly ':status': number }]
    return headers[':status']
  } finally {
    connection.destroy()
  }
}

const LETTERS = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** A public key as Restate writes it, in base 58. */
function identityOf(key: KeyObject): string {
  const bytes = Buffer.from(key.export({ format: 'jwk' }).x!, 'base64url')
  let [rest, text] = [BigInt(`0x${bytes.toString('hex')}`), '']
  for (; rest > 0n; rest /= 58n) text = LETTERS[Number(rest % 58n)]! + text
  return `publickeyv1_${'1'.repeat(bytes.findIndex((byte) => byte !== 0))}${text}`
}
