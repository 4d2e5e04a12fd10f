import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { tool } from '../core/agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import type { AiSdkModel } from '../core/state/inference.ts'
import type { ToolExecution } from '../core/state/tool-call.ts'

// These packages parse the arguments of a call, and write them again, rounded.

const json = { headers: { 'content-type': 'application/json' } }

/** Replies with a call and these arguments, then with a text. */
function providers(args: string): { readonly [name: string]: () => AiSdkModel } {
  const replies = (call: string, text: string, around: (part: string) => string): typeof fetch => {
    const parts = [call, text]
    return () => Promise.resolve(new Response(around(parts.shift()!), json))
  }
  return {
    anthropic: () =>
      createAnthropic({
        apiKey: 'none',
        fetch: replies(
          `{"type":"tool_use","id":"t","name":"give","input":${args}}`,
          '{"type":"text","text":"Done."}',
          (part) =>
            `{"id":"m","type":"message","role":"assistant","model":"m","content":[${part}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`,
        ),
      })('claude-sonnet-4-5'),
    google: () =>
      createGoogleGenerativeAI({
        apiKey: 'none',
        fetch: replies(
          `{"functionCall":{"name":"give","args":${args}}}`,
          '{"text":"Done."}',
          (part) => `{"candidates":[{"content":{"role":"model","parts":[${part}]},"finishReason":"STOP","index":0}]}`,
        ),
      })('gemini-2.5-flash'),
  }
}

async function executions(args: string): Promise<readonly ToolExecution[]> {
  const give = tool({ name: 'give', description: 'Gives.', input: { type: 'object' }, execute: (given) => given })
  const runs = Object.values(providers(args)).map((model) => createAgent({ model: model(), use: [give] }).run('Go.'))
  return (await Promise.all(runs)).map((run) => run.state.execution!.steps.at(0)!.toolExecutions[0]!)
}

test('an integer beyond 2^53 that the package of a provider may have rounded fails the call', async () => {
  for (const [written, rounded] of [
    ['{"id":9007199254740993}', '9007199254740992'],
    ['{"list":[{"id":-12345678901234567891}]}', '-12345678901234567000'],
    ['{"id":10000000000000001}', '10000000000000000'],
    ['{"id":123456789012345678901234}', '1.2345678901234569e+23'],
  ] as const)
    for (const { status, output } of await executions(written)) {
      assert.equal(status, 'failed')
      assert.equal(
        output,
        `The arguments contain a number that cannot be represented exactly: ${rounded}. Write it as a string.`,
      )
    }
})

test('other numbers reach the tool from providers that parse the arguments', async () => {
  const args = '{"a":9007199254740991,"b":-1.5,"c":1e+300,"d":"9007199254740993","e":0.1234567890123456}'
  for (const { status, output } of await executions(args)) {
    assert.equal(status, 'ok')
    assert.deepEqual(output, JSON.parse(args))
  }
})
