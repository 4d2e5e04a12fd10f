import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { FixtureResponse } from '@copilotkit/aimock'
import type { Agent } from '../core/agent/agent.ts'
import type { RunOptions } from '../core/agent/run-options.ts'
import type { Run } from '../core/agent/run.ts'
import type { AgentEvent } from '../core/state/event.ts'
import type { AiSdkModel } from '../core/state/inference.ts'
import type { JsonObject } from '../values/json.ts'
import type { Message } from '../core/state/message.ts'
import type { AgentError } from '../errors.ts'
import { startServer, type ProviderServer, type RawAnswer, type Turn } from './provider-server.fixture.ts'
import { readRequest, type Wire } from './provider-wire.fixture.ts'

// One suite for all providers: each with its own package and a server over HTTP, run and streamed.

export type Row = {
  readonly name: string
  readonly modelId: string
  readonly wire: Wire
  readonly path: string
  readonly create: (address: string, apiKey: string) => (modelId: string) => AiSdkModel
  /** The environment variables its package reads, for a model by name. */
  readonly environment: (address: string, apiKey: string) => { readonly [name: string]: string }
  /** Token counts in its own format. */
  readonly usage: (tokens: Tokens) => JsonObject
  /** Its errors in a stream: overloaded, and rate limited. */
  readonly streamErrors: readonly [overloaded: JsonObject, limited: JsonObject]
}

export type Tokens = {
  readonly input: number
  readonly output: number
  readonly cached: number
  readonly thinking: number
}

export const rows: readonly Row[] = [
  {
    name: 'openai',
    modelId: 'gpt-5',
    wire: 'responses',
    path: '/v1/responses',
    create: (address, apiKey) => createOpenAI({ baseURL: `${address}/v1`, apiKey }),
    environment: (address, apiKey) => ({ OPENAI_BASE_URL: `${address}/v1`, OPENAI_API_KEY: apiKey }),
    usage: ({ input, output, cached, thinking }) => ({
      input_tokens: input,
      input_tokens_details: { cached_tokens: cached },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: thinking },
      total_tokens: input + output,
    }),
    streamErrors: [
      { type: 'error', code: 'server_error', message: 'The server had an error.', param: null, sequence_number: 9 },
      {
        type: 'response.failed',
        sequence_number: 9,
        response: { id: 'r', status: 'failed', error: { code: 'rate_limit_exceeded', message: 'Too much.' } },
      },
    ],
  },
  {
    name: 'anthropic',
    modelId: 'claude-sonnet-4-5',
    wire: 'messages',
    path: '/v1/messages',
    create: (address, apiKey) => createAnthropic({ baseURL: `${address}/v1`, apiKey }),
    environment: (address, apiKey) => ({ ANTHROPIC_BASE_URL: `${address}/v1`, ANTHROPIC_API_KEY: apiKey }),
    usage: ({ input, output, cached, thinking }) => ({
      input_tokens: input - cached,
      cache_read_input_tokens: cached,
      output_tokens: output,
      output_tokens_details: { thinking_tokens: thinking },
    }),
    streamErrors: [
      { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      { type: 'error', error: { type: 'rate_limit_error', message: 'Too much.' } },
    ],
  },
  {
    name: 'google',
    modelId: 'gemini-2.5-pro',
    wire: 'gemini',
    path: '/v1beta/models/gemini-2.5-pro',
    create: (address, apiKey) => createGoogleGenerativeAI({ baseURL: `${address}/v1beta`, apiKey }),
    environment: (address, apiKey) => ({
      GOOGLE_GENERATIVE_AI_BASE_URL: `${address}/v1beta`,
      GOOGLE_GENERATIVE_AI_API_KEY: apiKey,
    }),
    usage: ({ input, output, cached, thinking }) => ({
      promptTokenCount: input,
      cachedContentTokenCount: cached,
      candidatesTokenCount: output - thinking,
      thoughtsTokenCount: thinking,
      totalTokenCount: input + output,
    }),
    streamErrors: [
      { error: { code: 503, message: 'Try again later.', status: 'UNAVAILABLE' } },
      { error: { code: 429, message: 'Too much.', status: 'RESOURCE_EXHAUSTED' } },
    ],
  },
  {
    name: 'openai-compatible',
    modelId: 'llama3.2',
    wire: 'chat',
    path: '/v1/chat/completions',
    create: (address, apiKey) =>
      createOpenAICompatible({ name: 'openai-compatible', baseURL: `${address}/v1`, apiKey, includeUsage: true }),
    environment: (address, apiKey) => ({
      OPENAI_COMPATIBLE_BASE_URL: `${address}/v1`,
      OPENAI_COMPATIBLE_API_KEY: apiKey,
    }),
    usage: ({ input, output, cached, thinking }) => ({
      prompt_tokens: input,
      prompt_tokens_details: { cached_tokens: cached },
      completion_tokens: output,
      completion_tokens_details: { reasoning_tokens: thinking },
      total_tokens: input + output,
    }),
    streamErrors: [
      { error: { message: 'Provider returned an error', code: 502 } },
      { error: { message: 'Too much.', type: 'rate_limit_error', code: 'rate_limited' } },
    ],
  },
]

export type Mode = 'run' | 'stream'

export type World = {
  readonly row: Row
  readonly mode: Mode
  readonly server: ProviderServer
  readonly model: AiSdkModel
  /** Runs an agent in the mode of this world. */
  readonly run: <O>(agent: Agent<O>, input?: string | Message, options?: WatchOptions) => Promise<Watched<O>>
  /** What was sent to the server, request by request. */
  readonly sent: () => readonly (readonly string[])[]
  /** A reply with tool calls, in the form of this provider. */
  readonly calls: (...calls: { name: string; arguments: string; id: string }[]) => FixtureResponse
}

export type WatchOptions = RunOptions & { readonly onEvent?: (event: AgentEvent) => void }
export type Watched<O> = { readonly run: Run<O>; readonly events: readonly AgentEvent[] }

export const KEY = 'canary-4f1d9c27ab'

/** A test for every provider, run and streamed. */
export function scenario(
  title: string,
  body: (world: World) => Promise<void>,
  { only = () => true }: { readonly only?: (row: Row, mode: Mode) => boolean } = {},
): void {
  describe(title, { concurrency: 8 }, () => {
    for (const row of rows) {
      for (const mode of ['run', 'stream'] as const) {
        if (only(row, mode)) test(`${row.name}, ${mode}: ${title}`, () => inWorld(row, mode, body))
      }
    }
  })
}

async function inWorld(row: Row, mode: Mode, body: (world: World) => Promise<void>): Promise<void> {
  const server = await startServer()
  try {
    await body({
      row,
      mode,
      server,
      model: row.create(server.url, KEY)(row.modelId),
      run: (agent, input = 'Go.', options = {}) => watch(agent, input, { mode, options }),
      sent: () => server.requests.map((request) => readRequest(row.wire, request.body)),
      calls: (...toolCalls) => ({ toolCalls, ...(row.wire === 'gemini' && { finishReason: 'stop' }) }),
    })
  } finally {
    await server.close()
  }
}

type Watching = { readonly mode: Mode; readonly options: WatchOptions }

async function watch<O>(agent: Agent<O>, input: string | Message, { mode, options }: Watching): Promise<Watched<O>> {
  const { onEvent, ...rest } = options
  if (mode === 'run') return { run: await agent.run(input, rest), events: [] }
  const live = agent.stream(input, rest)
  const events: AgentEvent[] = []
  for await (const event of live) {
    events.push(event)
    onEvent?.(event)
  }
  return { run: await live.run, events }
}

/** A reply with token counts, some of which aimock leaves out. */
export function withUsage(row: Row, tokens: Tokens, says: FixtureResponse): RawAnswer {
  const usage = `${row.wire === 'gemini' ? 'usageMetadata' : 'usage'}":${JSON.stringify(row.usage(tokens))}`
  return { says, body: (said) => said.replace(/usage(?:Metadata)?":\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}/g, usage) }
}

/** A reply that was truncated or filtered. */
export function endedBy(row: Row, reason: 'length' | 'content_filter', content: string): Turn {
  const says = { content, finishReason: reason === 'length' || row.wire !== 'messages' ? reason : 'refusal' }
  if (row.wire !== 'responses') return says
  const details = { reason: reason === 'length' ? 'max_output_tokens' : reason } // aimock leaves them out
  const incomplete = `"status":"incomplete","incomplete_details":${JSON.stringify(details)}`
  return {
    says: { content, finishReason: 'length' },
    body: (said) => said.replace('"status":"incomplete"', incomplete),
  }
}

/** A stream of one event, whatever it is. */
export function streamed(event: string): RawAnswer {
  return { headers: { 'content-type': 'text/event-stream' }, body: `data: ${event}\n\n` }
}

/** The error of a run that failed. */
export function failureOf({ run }: { readonly run: Run }): AgentError {
  assert.equal(run.status, 'failed')
  return run.error
}

/** The text on the screen of a consumer that handles `retracted`. */
export function shownText(events: readonly AgentEvent[]): string {
  return events.reduce((shown, event) => {
    if (event.type === 'retracted') return ''
    return event.type === 'text' ? shown + event.delta : shown
  }, '')
}
