import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { test } from 'node:test'
import type { SessionWorker } from './turn-driver.ts'
import { workerHealth } from './worker-health.ts'

type Listener = ReturnType<typeof workerHealth>

function workerWith(check: () => Promise<void>, isDraining = false): SessionWorker {
  return { running: 0, isDraining, check, close: async () => undefined }
}

/** The answer to a request, without a socket. */
function ask(listener: Listener, url: string, method = 'GET'): Promise<readonly [status: number, text: string]> {
  const { promise, resolve } = Promise.withResolvers<readonly [number, string]>()
  const response = {
    status: 0,
    writeHead(status: number) {
      this.status = status
      return this
    },
    end(text: string) {
      resolve([this.status, text.trim()])
    },
  }
  listener({ url, method } as IncomingMessage, response as unknown as ServerResponse)
  return promise
}

test('a worker that starts is alive but not ready, and neither is one that could not start', async () => {
  const { promise, resolve } = Promise.withResolvers<SessionWorker>()
  const listener = workerHealth(promise)
  assert.deepEqual(await ask(listener, '/healthz'), [200, 'ok'])
  assert.deepEqual(await ask(listener, '/readyz'), [503, 'starting'])
  resolve(workerWith(async () => undefined))
  await promise
  assert.deepEqual(await ask(listener, '/readyz'), [200, 'ready'])
  const failed = workerHealth(Promise.reject(new Error('no')))
  await new Promise(setImmediate)
  assert.deepEqual(await ask(failed, '/readyz'), [503, 'failed'])
})

test('a worker that drains is not ready, and its store is not asked', async () => {
  const listener = workerHealth(workerWith(() => assert.fail('it was asked'), true))
  await new Promise(setImmediate)
  assert.deepEqual(await ask(listener, '/readyz'), [503, 'draining'])
})

test('a thousand requests at once are one check of the store', async () => {
  let checks = 0
  const listener = workerHealth(workerWith(async () => void checks++))
  await new Promise(setImmediate)
  await Promise.all(Array.from({ length: 1_000 }, () => ask(listener, '/readyz')))
  assert.equal(checks, 1)
})

test('a store that fails or does not answer makes a worker unready, and the reason is reported', async (t) => {
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  const down = new Error('down')
  const failing = workerHealth(
    workerWith(() => Promise.reject(down)),
    { onError },
  )
  await new Promise(setImmediate)
  assert.deepEqual(await ask(failing, '/readyz'), [503, 'unreachable'])
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const silent = workerHealth(
    workerWith(() => new Promise<void>(() => undefined)),
    { onError },
  )
  await Promise.resolve()
  const answer = ask(silent, '/readyz')
  t.mock.timers.tick(2_000)
  assert.deepEqual(await answer, [503, 'unreachable'])
  assert.equal(errors[0], down)
  assert.match(String(errors[1]), /did not answer within 2000 ms/)
})
