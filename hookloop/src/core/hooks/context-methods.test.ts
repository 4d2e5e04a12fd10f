import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { describeValue } from '../../values/describe-value.ts'
import type { BaseContext } from './base-context.ts'
import { contextClasses } from './context-methods.ts'
import { hook } from './hook.ts'

suite('a value of the wrong kind fails the hook', () => {
  const responses: readonly (readonly [change: unknown, message: RegExp])[] = [
    [{ text: undefined }, /ctx\.withResponse: "text" is undefined\. Omit a field that does not change/],
    [{ content: undefined }, /"content" is undefined/],
    [{ finishReason: undefined }, /"finishReason" is undefined/],
    [{ text: 'x', content: [{ type: 'text', text: 'y' }] }, /either "text" or "content"/],
  ]
  for (const [change, message] of responses) {
    test(`ctx.withResponse, ${describeValue(change)}`, async () => {
      const redact = hook('afterInference', (ctx) => ctx.withResponse(change as never))
      const run = await createAgent({ model: scriptedModel(['secret']), use: [redact] }).run('go')
      assert.match(run.status === 'failed' ? run.error.message : run.status, message)
      assert.doesNotMatch(run.text, /secret/)
    })
  }

  const requests: readonly (readonly [change: unknown, message: RegExp])[] = [
    [{ messages: 'x' }, /The messages must be a list of messages, not "x"/],
    [{ responseFormat: 5 }, /The response format of a request must be a JSON Schema object/],
    [{ responseFormat: [] }, /The response format of a request must be a JSON Schema object/],
    [{ toolChoice: 'always' }, /The tool choice of a request must be 'auto', 'required', 'none' or \{ tool: name \}/],
    [{ toolChoice: { name: 'x' } }, /The tool choice of a request must be/],
  ]
  for (const [change, message] of requests) {
    test(`ctx.withRequest, ${JSON.stringify(change)}`, async () => {
      const model = scriptedModel(['done'])
      const use = [hook('beforeInference', (ctx) => ctx.withRequest(change as never))]
      const run = await createAgent({ model, use }).run('go')
      assert.match(run.status === 'failed' ? run.error.message : run.status, message)
      assert.equal(model.requests.length, 0)
    })
  }
})

test('a field of a request that is undefined does not change', async () => {
  const model = scriptedModel(['done'])
  const use = [hook('beforeInference', (ctx) => ctx.withRequest({ system: undefined, messages: undefined } as never))]
  const run = await createAgent({ model, instructions: 'Be brief.', use }).run('go')
  assert.deepEqual([run.status, model.requests[0]!.system], ['completed', 'Be brief.'])
})

test('a method that has another name in other libraries throws with the name that it has here', () => {
  const named = { guard: contextClasses.beforeToolUse.guard, step: contextClasses.beforeStep.guard }
  const call = (of: typeof BaseContext, name: string) => () =>
    (of.prototype as unknown as Record<string, () => void>)[name]!()
  assert.throws(call(named.guard, 'deny'), { message: /ctx\.deny\(\).* It is called "block" here\./ })
  assert.throws(call(named.step, 'deny'), { message: /It is called "stop" here\./ })
  assert.throws(call(named.step, 'approve'), { message: 'There is no ctx.approve() at beforeStep.' })
})
