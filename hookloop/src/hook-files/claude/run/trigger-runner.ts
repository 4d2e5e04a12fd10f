import { contextMessage } from '../../../actions/outcome.ts'
import type { AskedAnswer, Asker } from '../../../core/agent/capability.ts'
import { isInspecting } from '../../../core/agent/hook-agent.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../values/json.ts'
import type { EntryWarning } from '../../../core/state/ledger.ts'
import type { ToolCall } from '../../../core/state/tool-call.ts'
import { BaseContext } from '../../../core/hooks/base-context.ts'
import type { HookOutcome } from '../../../core/hooks/outcome.ts'
import type { StateChange } from '../../../core/state/state-diff.ts'
import type { SetupTrigger } from '../events/claude-events.ts'
import { ownerIsActive } from '../../active-owners.ts'
import type { ModelSource } from '../../../core/state/inference.ts'
import { HookMemory } from './hook-memory.ts'
import {
  commonFields,
  makerFor,
  makerOf,
  SESSION_KEY,
  sessionIn,
  sessionOf,
  type Payload,
  type PayloadOptions,
} from '../events/common-payload.ts'
import { expansionPayload, notificationPayload, payloadsFor, toolPayload } from '../events/payload.ts'
import { runEvent, type EventResult, type HookTable, type RunEventOptions } from './run-event.ts'
import type { HandlerContext } from './run-handler.ts'
import { isTerminalSequence } from '../answer/terminal-sequence.ts'
import { mergeOutcomes, spentOn, stopVote, toHookOutcome } from '../answer/to-hook-outcome.ts'
import { fromClaudeInput } from '../events/tool-names.ts'
import { askingModel, Inspectors } from './ask-model.ts'
import type { HandlerAnswer } from '../answer/handler-answer.ts'
import { decidedAt, toWarning, warningsOf } from '../answer/report.ts'
import { stringIn } from '../../text.ts'
import { Transcripts } from '../events/transcripts.ts'

/** The options of `claudeHooks` that concern running handlers. */
export type RunnerSettings = {
  /** Models by the names that `prompt` and `agent` handlers use. An unknown name, and no name, is the model of the conversation. Default none. */
  readonly models?: { readonly [name: string]: ModelSource }
  /** Runs Setup hooks with this trigger, once, before the first session of the process. Default: they do not run. */
  readonly setup?: SetupTrigger
  /** Writes the `terminalSequence` of hooks to a terminal: only titles, notifications and bells. Default: none is written. */
  readonly terminal?: (sequence: string) => void
}

type RunnerOptions = RunnerSettings & {
  readonly context: HandlerContext
  /** Whether PermissionRequest hooks run as part of the approval, and not here. */
  readonly hasApproval: boolean
}

/** Runs the handlers of a project when a trigger fires. */
export class TriggerRunner {
  readonly #table: HookTable
  readonly #options: RunnerOptions
  readonly #payloadOptions: PayloadOptions
  readonly #memory = new HookMemory()
  readonly #inspectors: Inspectors
  #setup: SetupTrigger | undefined

  constructor(table: HookTable, options: RunnerOptions) {
    this.#table = table
    this.#options = options
    this.#setup = options.setup
    const {
      context: { cwd },
      models = {},
    } = options
    this.#inspectors = new Inspectors(cwd, models)
    this.#payloadOptions = {
      cwd,
      transcripts: new Transcripts(cwd),
      isContinued: (agentId, call) => this.#memory.continued.has(`${agentId}/${call}`),
    }
  }

  async perform(ctx: BaseContext, signal: AbortSignal): Promise<HookOutcome> {
    const session = sessionOf(ctx)
    if (ctx.trigger === 'onSessionEnd') this.#memory.stopBackground(session)
    if (ctx.trigger === 'afterExecution' && !hasSession(ctx)) this.#memory.stopBackground(ctx.state.agentId)
    const fired = await this.#fire(ctx, signal)
    const outcome = ctx.trigger === 'afterStep' ? mergeOutcomes(fired, await this.#interruption(ctx, session)) : fired
    return this.#withState(ctx, { session, outcome, late: await this.#lateTexts(ctx, session) })
  }

  /** Runs UserPromptExpansion for a command of the user. */
  performExpansion(ctx: BaseContext, signal: AbortSignal): Promise<HookOutcome> {
    const payload = expansionPayload(ctx, makerFor(ctx, this.#payloadOptions))
    return payload === undefined ? Promise.resolve({}) : this.#fireOne(ctx, payload, { signal, args: undefined })
  }

  /** Texts of background handlers. When they arrive depends on timing, so they are recorded. */
  async #lateTexts(ctx: BaseContext, session: string): Promise<readonly string[]> {
    if (ctx.trigger === 'onSessionEnd' || !this.#table.hasAsync) return []
    return (await this.#recorded(ctx, 'late', () => this.#memory.takeLate(session))) as readonly string[]
  }

  /** Ends the run after a step in which a PermissionRequest hook denied a call with `interrupt`. */
  async #interruption(ctx: BaseContext, session: string): Promise<HookOutcome> {
    if (!this.#options.hasApproval) return {}
    const reason = await this.#recorded(ctx, 'interrupt', () => this.#memory.interrupts.take(session) ?? null)
    return typeof reason === 'string' ? { votes: [stopVote({ reason }, 'PermissionRequest')] } : {}
  }

  async #recorded(ctx: BaseContext, name: string, take: () => Json): Promise<Json> {
    const { recorded } = this.#contextFor(ctx, ctx.signal)
    if (recorded === undefined) return take()
    const { other } = await recorded(name, () => Promise.resolve({ other: { [name]: take() } }))
    return other![name]!
  }

  async #fire(ctx: BaseContext, signal: AbortSignal): Promise<HookOutcome> {
    const payloads = [...this.#setupPayloads(ctx), ...payloadsFor(ctx, this.#payloadOptions)]
    let outcome: HookOutcome = {}
    for (let i = 0; i < payloads.length && outcome.decision !== 'block'; i++) {
      const named = i === 0 ? payloads[i]! : { ...payloads[i]!, part: `#${i}` }
      outcome = mergeOutcomes(outcome, await this.#fireOne(ctx, named, { signal, args: outcome.args }))
      // The later payloads have the changed arguments.
      if (i === 0 && outcome.args !== undefined)
        payloads.splice(1, Infinity, ...payloadsFor(ctx, { ...this.#payloadOptions, args: outcome.args }).slice(1))
    }
    return outcome
  }

  /** Once, before the first session. */
  #setupPayloads(ctx: BaseContext): readonly Payload[] {
    const trigger = this.#setup
    if (trigger === undefined || ctx.trigger !== 'onSessionStart') return []
    this.#setup = undefined
    return [makerFor(ctx, this.#payloadOptions)('Setup', { trigger }, trigger)]
  }

  async #fireOne(
    ctx: BaseContext,
    payload: Payload,
    { signal, args }: { readonly signal: AbortSignal; readonly args: Json | undefined },
  ): Promise<HookOutcome> {
    if (payload.event === 'PreToolUse') this.#rememberCall(payload, ctx.state)
    if (!this.#table.has(payload.event)) return {}
    const context = this.#contextFor(ctx, signal)
    const result = await this.#run(payload, { ...this.#invocationOf(ctx), context })
    const warnings = [...warningsOf(result, payload)]
    const allowed = withoutDefer(ctx, result)
    if (allowed !== result)
      warnings.push(toWarning('PreToolUse hook: "defer" is ignored, because the turn has several calls'))
    const answered = await this.#answerHere(ctx, allowed, { context, warnings })
    const by = decidedAt(answered)
    const outcome: HookOutcome = {
      ...(warnings.length > 0 && { warnings }),
      ...(by !== undefined && { decidedAt: by }),
      ...toHookOutcome(ctx, payload, { merged: answered.merged, args }),
      ...spentOn([...result.ran, ...(answered === allowed ? [] : answered.ran)]),
    }
    if (payload.event === 'SubagentStop' && outcome.votes !== undefined) {
      this.#memory.continued.set(`${ctx.state.agentId}/${stringIn(payload.input['agent_id'])}`, true)
    }
    return outcome
  }

  #invocationOf(ctx: BaseContext): Omit<Invocation, 'context'> {
    return {
      session: sessionOf(ctx),
      isActive: (source) => ownerIsActive(source)(ctx),
      isInspecting: isInspecting(ctx.state),
    }
  }

  async #run(payload: Payload, { session, ...running }: Invocation): Promise<EventResult> {
    const background = new AbortController()
    const result = await runEvent(this.#table, payload, {
      ...running,
      backgroundContext: { ...this.#options.context, signal: background.signal },
      onceDone: this.#memory.onceDone(session),
      onBackground: (late) => {
        this.#memory.follow(session, late, background)
        void late.then(({ answer }) => background.signal.aborted || this.#write(answer))
      },
    })
    for (const { answer } of result.ran) this.#write(answer)
    return result
  }

  /** Only sequences that are known to be harmless are written. */
  #write({ terminalSequence: sequence }: HandlerAnswer): void {
    if (sequence !== undefined && isTerminalSequence(sequence)) this.#options.terminal?.(sequence)
  }

  /** The context of handlers in this invocation. If models are called, answers are recorded one by one. */
  #contextFor(ctx: BaseContext, signal: AbortSignal): HandlerContext {
    const { context, models = {} } = this.#options
    if (!this.#table.asksModels) return { ...context, signal }
    const { effects, step } = BaseContext.hostOf(ctx)
    const call = BaseContext.draftOf(ctx).facts['toolCall'] as ToolCall | undefined
    return {
      ...context,
      signal,
      askModel: askingModel(ctx, models),
      askAgent: this.#inspectors.askIn(ctx),
      recorded: async (name, work) => {
        const { trigger } = ctx
        const key = effects.keyOf({ step, kind: 'hook', trigger, hook: 'claude', call: call?.id, n: name })
        return effects.scope().perform<HandlerAnswer>({ key, input: () => null }, work)
      },
    }
  }

  #rememberCall({ input }: Payload, { agentId }: Pick<Asker, 'agentId'>): void {
    if (!this.#options.hasApproval || !(this.#table.has('PermissionRequest') || this.#table.has('Notification'))) return
    const { session_id, transcript_path, cwd, prompt_id, agent_id, agent_type, tool_use_id } = input
    const common = { session_id, transcript_path, cwd, prompt_id, agent_id, agent_type }
    const there = Object.entries(common).filter((entry): entry is [string, Json] => entry[1] !== undefined)
    this.#memory.calls.set(`${agentId}/${stringIn(tool_use_id)}`, Object.fromEntries(there))
  }

  /** If hooks decide to ask, PermissionRequest hooks answer before the approver does. */
  async #answerHere(
    ctx: BaseContext,
    result: EventResult,
    { context, warnings }: { readonly context: HandlerContext; readonly warnings: EntryWarning[] },
  ): Promise<EventResult> {
    if (result.merged.decision !== 'ask' || this.#options.hasApproval || !this.#table.has('PermissionRequest'))
      return result
    const call = BaseContext.draftOf(ctx).facts['toolCall'] as ToolCall
    const payload = toolPayload(makerFor(ctx, this.#payloadOptions), 'PermissionRequest', call, this.#payloadOptions)
    const answered = await this.#run(payload, { ...this.#invocationOf(ctx), context })
    warnings.push(...warningsOf(answered, payload))
    const { decision, reason, updatedInput, interrupt } = answered.merged
    if (decision !== 'allow' && decision !== 'deny') return result
    return {
      ...answered,
      merged: {
        ...result.merged,
        ...(updatedInput !== undefined && { updatedInput }),
        ...(interrupt === true
          ? { decision: 'stop', reason, alsoDecided: { decision: 'deny', reason } }
          : { decision, reason }),
      },
    }
  }

  /**
   * The decision of PermissionRequest hooks about a call that needs approval. There is no hook context then, so hooks of
   * skills and agents do not run.
   */
  async answerApproval(call: ToolCall, asker: Asker, signal: AbortSignal): Promise<AskedAnswer | undefined> {
    if (!this.#table.has('PermissionRequest')) return undefined
    const common = this.#commonOf(call, asker)
    const payload = toolPayload(makerOf(common), 'PermissionRequest', call, this.#payloadOptions)
    const session = stringIn(common['session_id'])
    const result = await this.#run(payload, { session, context: { ...this.#options.context, signal } })
    const warnings = warningsOf(result, payload)
    if (warnings.length > 0) asker.warn?.(warnings)
    const { merged } = result
    if (merged.decision === 'deny') {
      const reason = merged.reason === '' ? 'A hook blocked it.' : merged.reason
      if (merged.interrupt === true) this.#memory.interrupts.set(session, reason)
      return { block: reason }
    }
    if (merged.decision !== 'allow') return undefined
    return merged.updatedInput === undefined ? 'allow' : { allow: fromClaudeInput(call.name, merged.updatedInput) }
  }

  /** Runs Notification hooks in the background while the approver is asked. */
  notify(call: ToolCall, asker: Asker): void {
    if (!this.#table.has('Notification')) return
    const common = this.#commonOf(call, asker)
    const session = stringIn(common['session_id'])
    const stop = new AbortController()
    const ended = this.#memory.startBackground(session, stop)
    const context = { ...this.#options.context, signal: stop.signal }
    const notification = notificationPayload(makerOf(common), call, this.#payloadOptions)
    void this.#run(notification, { session, context }).finally(ended)
  }

  /** The common fields of a call. If another process has judged it, they are taken from the state. */
  #commonOf({ id }: ToolCall, { agentId, state }: Asker): JsonObject {
    return this.#memory.calls.get(`${agentId}/${id}`) ?? commonFields(state, sessionIn(state), this.#payloadOptions)
  }

  /** Adds to the state: the id of the session, and texts of background handlers. */
  #withState(
    ctx: BaseContext,
    { session, outcome, late: texts }: { session: string; outcome: HookOutcome; late: readonly string[] },
  ): HookOutcome {
    const late = texts.map((text) => contextMessage(text, 'a hook in the background'))
    const stored = this.#storedState(ctx, session)
    if (late.length === 0 && stored === undefined) return outcome
    const state: StateChange = {
      ...outcome.state,
      ...(late.length > 0 && { appended: [...late, ...(outcome.state?.appended ?? [])] }),
      ...(stored !== undefined && { metadata: { ...outcome.state?.metadata, [SESSION_KEY]: stored } }),
    }
    return { ...outcome, state }
  }

  #storedState(ctx: BaseContext, session: string): JsonObject | undefined {
    const before = storedIn(ctx)
    return ctx.trigger !== 'onSessionStart' || before['session'] === session ? undefined : { ...before, session }
  }
}

function storedIn({ state }: BaseContext): JsonObject {
  const stored = state.metadata[SESSION_KEY]
  return isJsonObject(stored) ? stored : {}
}

function hasSession(ctx: BaseContext): boolean {
  return storedIn(ctx)['session'] !== undefined
}

type Invocation = Pick<RunEventOptions, 'context' | 'isActive' | 'isInspecting'> & { readonly session: string }

/** A call can be deferred only if it is the only one of its turn. */
function withoutDefer({ state }: BaseContext, result: EventResult): EventResult {
  if (result.merged.decision !== 'defer') return result
  const last = state.messages.at(-1)
  const calls = last?.content.filter((part) => part.type === 'tool-call').length ?? 0
  if (calls <= 1) return result
  const { decision: _defer, reason: _reason, ...rest } = result.merged
  return { ...result, merged: { ...rest, decision: 'none', reason: '' } }
}
