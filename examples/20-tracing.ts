// A run as OpenTelemetry spans, collected in memory and printed here; in production an exporter sends them.
// They contain no text of the conversation unless `content: true` is set, and always who decided what.
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace'
import { createAgent, guard, tool } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
import { tracing } from 'hookloop/tracing'

const exporter = new InMemorySpanExporter()
const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })

const touch = (name: string) =>
  tool({ name, description: `${name} a file.`, input: { type: 'object' }, execute: () => 'ok' })

const agent = createAgent({
  model: scriptedModel([{ toolCalls: [{ name: 'read' }, { name: 'delete' }] }, 'Tidied up.']),
  use: [
    tracing({ tracer: provider.getTracer('example'), agentName: 'tidy' }),
    touch('read'),
    touch('delete'),
    guard('beforeToolUse', (ctx) => ctx.block('Nothing is deleted here.'), { name: 'keep', tool: 'delete' }),
  ],
})

const shown = [
  'hookloop.execution.status',
  'hookloop.tool.status',
  'hookloop.tool.by',
  'hookloop.hook.decision',
  'gen_ai.usage.input_tokens',
  'gen_ai.usage.output_tokens',
]

await agent.run('Tidy up.')
print(exporter.getFinishedSpans())

/** The spans below one of them, or all of them, each under its parent. */
function print(spans: readonly ReadableSpan[], parent?: string, indent = ''): void {
  for (const span of spans) {
    if (span.parentSpanContext?.spanId !== parent) continue
    console.log(`${indent}${span.name.padEnd(28 - indent.length)} ${describe(span)}`)
    print(spans, span.spanContext().spanId, `${indent}  `)
  }
}

function describe({ attributes }: ReadableSpan): string {
  const words = shown.map((name) => [name.split('.').at(-1), attributes[name]] as const)
  return words.flatMap(([name, value]) => (value === undefined ? [] : `${name}: ${JSON.stringify(value)}`)).join(', ')
}
