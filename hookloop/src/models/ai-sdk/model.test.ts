import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AiSdkModel, ModelRequest } from '../../core/state/inference.ts'
import { textMessage } from '../../core/state/message.ts'
import { fromAiSdk } from './model.ts'

const request: ModelRequest = { system: '', messages: [textMessage('user', 'Go.')], tools: [] }

/** A model that obeys the signal and throws its own error. */
function waiting(): AiSdkModel & { readonly signals: AbortSignal[] } {
  const signals: AbortSignal[] = []
  const wait = ({ abortSignal }: { abortSignal: AbortSignal }): Promise<never> =>
    new Promise((_resolve, reject) => {
      signals.push(abortSignal)
      abortSignal.addEventListener('abort', () => reject(new Error('my own words')))
    })
  return {
    specificationVersion: 'v4',
    provider: 'acme.chat',
    modelId: 'large',
    doGenerate: wait,
    doStream: wait,
    signals,
  }
}

for (const onDelta of [undefined, () => undefined]) {
  const how = onDelta === undefined ? 'asked' : 'streamed'
  const call = (signal: AbortSignal) => (onDelta === undefined ? { signal } : { signal, onDelta })

  test(`a model that is ${how} and times out fails with MODEL_TIMED_OUT, whatever its adapter throws`, async () => {
    const model = waiting()
    const asking = fromAiSdk(model, undefined).infer(
      { ...request, settings: { timeoutMs: 5 } },
      call(new AbortController().signal),
    )
    await assert.rejects(asking, { code: 'MODEL_TIMED_OUT', value: { provider: 'acme', model: 'large' } })
    assert.ok(model.signals[0]!.aborted)
  })

  test(`a model that is ${how} and cancelled rejects with the reason of the cancellation`, async () => {
    const [model, controller] = [waiting(), new AbortController()]
    const asking = fromAiSdk(model, undefined).infer(request, call(controller.signal))
    await new Promise((resolve) => setImmediate(resolve))
    controller.abort('enough')
    await assert.rejects(asking, (reason) => reason === 'enough')
    assert.ok(model.signals[0]!.aborted)
  })
}

test('a stream that fails is cancelled', async () => {
  const { model, cancelled } = streaming((controller) =>
    controller.enqueue({ type: 'error', error: new Error('broken') }),
  )
  const signal = new AbortController().signal
  await assert.rejects(fromAiSdk(model, undefined).infer(request, { signal, onDelta: () => undefined }), /broken/)
  assert.ok(cancelled())
})

test('a stream that ignores the signal is cancelled', async () => {
  const controller = new AbortController()
  const { model, cancelled } = streaming(() => undefined)
  const asking = fromAiSdk(model, undefined).infer(request, { signal: controller.signal, onDelta: () => undefined })
  await new Promise((resolve) => setImmediate(resolve))
  controller.abort('enough')
  await assert.rejects(asking, (reason) => reason === 'enough')
  assert.ok(cancelled())
})

/** A model whose stream ignores the signal. */
function streaming(start: (controller: ReadableStreamDefaultController) => void, whenAsked?: () => void) {
  let isCancelled = false
  const doStream = async () => {
    queueMicrotask(() => whenAsked?.())
    return { stream: new ReadableStream({ start, cancel: () => void (isCancelled = true) }) }
  }
  return { model: { ...waiting(), doStream }, cancelled: () => isCancelled }
}

test('providerOptions without a provider are rejected with an example', async () => {
  const asking = fromAiSdk(waiting(), undefined).infer(
    { ...request, settings: { providerOptions: { temperature: 1 } } },
    { signal: new AbortController().signal },
  )
  await assert.rejects(asking, { code: 'MODEL_REJECTED', message: /for each provider: \{ "temperature": \{ … \} \}/ })
})
