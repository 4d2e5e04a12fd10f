import { textOfJson } from '../values/json.ts'
import type { Context } from '@opentelemetry/api'
import type { ObserveContext } from '../core/hooks/context.ts'
import { attributes, operations } from './conventions.ts'
import { usageFacts } from './facts.ts'
import { substituteOf, type Reading } from './hook-times.ts'
import type { Instruments } from './instruments.ts'
import type { Spans } from './spans.ts'

type Ended = ObserveContext<'afterToolUse'>

/** The tool calls of an execution. Each becomes a span when it is over. */
export class ToolTrace {
  readonly #spans: Spans
  readonly #instruments: Instruments
  /** Calls that reached `beforeToolUse`. */
  readonly #started = new Set<string>()
  #offered: readonly string[] = []
  /** Calls that run concurrently: when the last of them was authorized, and when all had ended. */
  #running: { readonly from: number; until: number | undefined } | undefined

  constructor(spans: Spans, instruments: Instruments) {
    this.#spans = spans
    this.#instruments = instruments
  }

  /** The tools a model may call in this step. */
  offer(names: readonly string[]): void {
    this.#offered = names
  }

  start({ toolCall }: ObserveContext<'beforeToolUse'>, at: number): void {
    this.#started.add(toolCall.id)
    this.#running = { from: at, until: undefined }
  }

  end(ctx: Ended, reading: Reading, parent: Context): void {
    const { toolCall, toolExecution } = ctx
    const { status, output, withheld, truncated, usage, by: decidedBy } = toolExecution
    const name = this.#knownName(ctx)
    const ran = this.#started.delete(toolCall.id) && status !== 'blocked'
    const { from, until } = this.#times(ctx, reading)
    const by = substituteOf(reading)
    const named = name === undefined ? {} : { [attributes.toolName]: name }
    this.#spans.add([operations.tool, name], {
      at: ran ? from : until,
      until,
      parent,
      facts: {
        [attributes.operation]: operations.tool,
        [attributes.toolType]: 'function',
        [attributes.toolCall]: toolCall.id,
        ...named,
        ...((decidedBy ?? by) !== undefined && { [attributes.toolBy]: decidedBy ?? by }),
        [attributes.toolStatus]: status,
        ...(withheld === true && { [attributes.toolWithheld]: true }),
        ...(truncated === true && { [attributes.toolTruncated]: true }),
        ...(usage !== undefined && usageFacts(usage)),
      },
      content: () => ({
        [attributes.toolArguments]: JSON.stringify(toolCall.args),
        [attributes.toolResult]: textOfJson(output),
      }),
      ...(status !== 'ok' && { error: { code: status, message: textOfJson(output) } }),
    })
    if (!ran || by !== undefined) return
    this.#instruments.took('tool', until - from, {
      ...named,
      [attributes.toolStatus]: status,
      ...(status !== 'ok' && { [attributes.errorType]: status }),
    })
  }

  /**
   * When the call started and ended. Concurrent calls are authorized one after the other, then all run, and then each is
   * reported: they started when the last was authorized and ended when the first was reported. Calls that wait for approval
   * are authorized again after it.
   */
  #times({ durationMs }: Ended, { callEnded }: Reading): { readonly from: number; readonly until: number } {
    const running = (this.#running ??= { from: callEnded, until: callEnded })
    running.until ??= callEnded
    const from = Math.min(running.from, running.until)
    return { from, until: Math.min(from + (durationMs ?? Infinity), running.until) }
  }

  /** The name, if the tool exists. A name that the model invented is content, and there is no limit to them. */
  #knownName({ toolCall: { id, name }, toolExecution: { rejected, withheld }, durationMs }: Ended): string | undefined {
    if (this.#started.has(id) || this.#offered.includes(name)) return name
    // It was offered earlier, if the call began or waited for approval in another process.
    const isDecided = durationMs !== undefined || (rejected !== true && withheld !== true)
    return isDecided ? name : undefined
  }
}
