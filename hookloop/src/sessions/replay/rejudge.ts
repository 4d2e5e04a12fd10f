import { parsedFacts } from '../../agent/tools/authorize-call.ts'
import { requestEffect } from '../../agent/model/fingerprint-request.ts'
import { callKey, type CallRecord } from '../../agent/model/hook-infer.ts'
import { modelFor } from '../../agent/model/send-request.ts'
import { inferFor } from '../../agent/model/infer.ts'
import { requestOf } from '../../agent/model/call.ts'
import type { AgentParts } from '../../agent/agent-parts.ts'
import { withholdsOnFailure } from '../../agent/loop/fire-trigger.ts'
import type { AgentState } from '../../state/agent-state.ts'
import type { InferenceRequest, InferenceResponse } from '../../state/inference.ts'
import type { Json } from '../../state/json.ts'
import { applyChange, stateChange } from '../../state/state-diff.ts'
import type { ToolCall } from '../../state/tool-call.ts'
import { noTokens } from '../../state/usage.ts'
import { AgentError, toAgentError } from '../../errors.ts'
import { deriveHost, type HookHost } from '../../hooks/hook-host.ts'
import type { HookInference, InferOptions, InferringHook } from '../../hooks/infer.ts'
import type { FactValues } from '../../hooks/base-context.ts'
import { Invocation } from '../../hooks/invocation.ts'
import { HookFailure, runGuards, runTransforms } from '../../hooks/run-hooks.ts'
import type { HookStack } from '../../hooks/stack.ts'
import { AnsweredEffects, type RecordedAnswers } from './recorded-answers.ts'
import { StateOverlay } from './state-overlay.ts'
import { judgedOf, type Judged, type RecordedEvent } from './event-recorder.ts'

/** Triggers at which a hook that fails does not stop the others. */
const quiet: ReadonlySet<string> = new Set(['onStop', 'afterExecution'])

export type Rejudgment = {
  readonly start: AgentState
  readonly judged: Judged
  /** Hooks with effects that were not recorded. They count as undecided. */
  readonly unanswered: readonly string[]
}

/** Judges the events of a recorded run with another set of hooks, one after the other. */
export class Rejudger {
  readonly #parts: AgentParts
  readonly #stack: HookStack
  readonly #answers: RecordedAnswers
  readonly #overlay = new StateOverlay()

  constructor(parts: AgentParts, stack: HookStack, answers: RecordedAnswers) {
    this.#parts = parts
    this.#stack = stack
    this.#answers = answers
  }

  /** The decision of these hooks at an event, on the recorded state plus what they would have changed in it before. */
  async judge(event: RecordedEvent): Promise<Rejudgment> {
    const { trigger, callIndex, start } = event
    const state = this.#overlay.apply(start.state)
    const call = start.facts['toolCall'] as ToolCall<Json> | undefined
    const plan = this.#stack.plan(trigger, call?.name)
    const effects = new AnsweredEffects(this.#answers, event)
    const firing = new Invocation(
      hostOf(event, effects, this.#parts),
      plan,
      state,
      this.#facts(event, state),
      callIndex,
    )
    await this.#transform(firing, event)
    const parsed: Parsing = trigger === 'beforeToolUse' ? await this.#parse(firing) : {}
    if (firing.failure === undefined && parsed.problem === undefined) await runGuards(firing, plan.guards)
    this.#overlay.update(event.after, firing.state)
    return { start: state, judged: { ...judgedOf(firing), ...parsed }, unanswered: effects.unanswered }
  }

  #facts({ trigger, start, changes }: RecordedEvent, state: AgentState): FactValues {
    if (trigger !== 'beforeInference' || !changes || state === start.state) return start.facts
    return { ...start.facts, request: requestOf({ parts: this.#parts, state }) }
  }

  async #transform(firing: Invocation, { changes, recoveries, trigger }: RecordedEvent): Promise<void> {
    if (!changes) return
    const tool = this.#toolOf(firing)
    if (tool !== undefined && trigger === 'beforeToolUse')
      firing.fits = async () => 'value' in (await tool.parse(argsOf(firing)))
    const { transforms } = firing.plan
    let failures = 0
    for (let from = 0; from <= transforms.length;) {
      try {
        return await runTransforms(firing, transforms, from)
      } catch (thrown) {
        if (!(thrown instanceof HookFailure)) {
          firing.failure = toAgentError(thrown, 'HOOK_FAILED')
          return
        }
        from = thrown.index + 1
        if (quiet.has(trigger)) continue
        // The same failure as in the recorded run is handled as it was then.
        const known = recoveries[failures++]
        const isKnown = known?.message === thrown.error.message
        if (!isKnown || known.next === 'end' || (known.next === 'ignore' && withholdsOnFailure.has(trigger))) {
          firing.failure = thrown.error
          if (!isKnown) return
        }
        const done = stateChange(firing.start.state, firing.state)
        const state = this.#overlay.apply(known.state)
        if (known.next === 'retry') firing.restart(state, firing.start.facts)
        else firing.update(applyChange(state, done), firing.facts)
        if (firing.failure !== undefined) return
        if (known.next === 'retry') from = 0
      }
    }
  }

  /** Between hooks and guards, arguments are parsed, as the tool will get them. */
  async #parse(firing: Invocation): Promise<Parsing> {
    const args = argsOf(firing)
    const tool = this.#toolOf(firing)
    if (firing.failure !== undefined || firing.blocked !== undefined || tool === undefined) return { args }
    const problem = await parseInto(firing, args, tool.parse)
    return problem === undefined ? { args } : { args, problem }
  }

  #toolOf(firing: Invocation): ReturnType<AgentParts['tools']['get']> {
    const call = firing.facts['toolCall'] as ToolCall | undefined
    return call === undefined ? undefined : this.#parts.tools.get(call.name)
  }
}

type Parsing = { readonly args?: Json; readonly problem?: string }
type Parse = NonNullable<ReturnType<AgentParts['tools']['get']>>['parse']

async function parseInto(firing: Invocation, args: Json, parse: Parse): Promise<string | undefined> {
  try {
    const parsed = await parse(args)
    if ('problem' in parsed) return parsed.problem
    const { id, name } = firing.facts['toolCall'] as ToolCall
    firing.update(firing.state, parsedFacts({ id, name, args }, parsed.value).facts)
    return undefined
  } catch (thrown) {
    return toAgentError(thrown, 'TOOL_INVALID').message
  }
}

function argsOf({ facts }: Invocation): Json {
  return (facts['toolCall'] as { readonly args: Json }).args
}

/** The host of an event, for hooks that are asked about it later. */
function hostOf(event: RecordedEvent, effects: AnsweredEffects, parts: AgentParts): HookHost {
  const { host, wasCancelled, start } = event
  const signal = wasCancelled ? AbortSignal.abort() : new AbortController().signal
  return deriveHost(host, {
    effects,
    signal,
    inferFor: (hook) => recordedInference(hook, start.state, { effects, parts }),
  })
}

/** Model calls of a hook, answered from the record: no model is called. */
function recordedInference(
  hook: InferringHook,
  state: AgentState,
  { effects, parts }: { readonly effects: AnsweredEffects; readonly parts: AgentParts },
): HookInference {
  let count = 0
  const infer = (options: InferOptions): ReturnType<HookInference['infer']> => {
    const number = ++count
    return inferFor(options, {
      toModel: parts.toModel,
      model: modelFor(parts, state),
      send: ({ request }, again) => recordedResponse(effects, callKey(hook, number, again), request),
    })
  }
  return { spent: noTokens, infer, close: async () => undefined }
}

/** A replay compares fingerprints, not whole requests. */
const noTools = new Map<string, never>()

async function recordedResponse(
  effects: AnsweredEffects,
  key: string,
  request: InferenceRequest,
): Promise<InferenceResponse> {
  const { response, error } = await effects.perform<CallRecord>(requestEffect(key, request, noTools))
  if (response !== null) return response
  const { code, message, value } = error!
  throw new AgentError(code, message, { value })
}
