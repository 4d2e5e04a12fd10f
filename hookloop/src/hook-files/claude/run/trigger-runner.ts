import type { AskedAnswer, Asker } from '../../../agent/capability.ts'
import { isInspecting } from '../../../agent/subagents/hook-agent.ts'
import type { Json, JsonObject } from '../../../state/json.ts'
import type { ToolCall } from '../../../state/tool-call.ts'
import type { ActionRun } from '../../../hooks/action.ts'
import type { ModelSource } from '../../../state/inference.ts'
import { BaseContext } from '../../../hooks/base-context.ts'
import type { HookOutcome } from '../../../hooks/outcome.ts'
import type { StateChange } from '../../../state/state-diff.ts'
import type { SetupTrigger } from '../events/claude-events.ts'
import type { HookSource } from '../load/handlers.ts'
import { activeFor, isKept, keptIn, loadedSkills, skillsOf } from './active-sources.ts'
import { expansionPayload } from '../events/expansion-payload.ts'
import { HookMemory, type Wake } from './hook-memory.ts'
import {
  commonFrom,
  makerFor,
  noticePayload,
  payloadsFor,
  permissionPayload,
  questionPayload,
  SESSION_KEY,
  sessionIn,
  sessionOf,
  type Payload,
  type PayloadSurroundings,
} from '../events/payload.ts'
import { runEvent, type EventResult, type HookTable } from './run-event.ts'
import type { HandlerContext } from './run-handler.ts'
import { isTerminalSequence } from '../answer/terminal-sequence.ts'
import { lateMessages, stopVote, toHookOutcome } from '../answer/to-hook-outcome.ts'
import { mergeOutcomes, spentOn } from '../answer/merge-outcomes.ts'
import { fromClaudeInput } from '../events/tool-names.ts'
import { Inspectors } from './ask-agent.ts'
import { askingModel } from './ask-model.ts'
import type { HandlerAnswer } from '../answer/handler-answer.ts'
import { Transcripts } from '../events/transcripts.ts'

type RunnerOptions = {
  readonly context: HandlerContext
  /** What handlers call models. */
  readonly models: { readonly [name: string]: ModelSource }
  /** What Setup hooks are told, if they are to run. */
  readonly setup: SetupTrigger | undefined
  /** Skills that bring hooks. */
  readonly skills: ReadonlySet<string>
  /** Whether questions are answered where a person is asked, and so not here. */
  readonly isAsked: boolean
  /** Is told when a hook in the background wants to be heard. */
  readonly onWake: ((wake: Wake) => void) | undefined
  /** Is told what is to be shown in place of a text. */
  readonly onDisplay: ((text: string, shown: string) => void) | undefined
  /** Where a terminal is. */
  readonly terminal: ((sequence: string) => void) | undefined
}

/** All handlers of a project as one: what it does when a trigger fires. */
export class TriggerRunner {
  readonly #table: HookTable
  readonly #options: RunnerOptions
  readonly #around: PayloadSurroundings
  readonly #memory = new HookMemory()
  readonly #inspectors: Inspectors
  #setup: SetupTrigger | undefined

  constructor(table: HookTable, options: RunnerOptions) {
    this.#table = table
    this.#options = options
    this.#setup = options.setup
    const { cwd } = options.context
    this.#inspectors = new Inspectors(cwd, options.models)
    this.#around = {
      cwd,
      transcripts: new Transcripts(cwd),
      isContinued: (agentId, call) => this.#memory.isContinued(`${agentId}/${call}`),
    }
  }

  /** Whether it asks models itself, with the context of a hook. */
  get asksModels(): boolean {
    return this.#table.asksModels && this.#options.context.askModel === undefined
  }

  /** Runs what fires now. */
  async perform(ctx: BaseContext, { mode, signal }: ActionRun): Promise<HookOutcome> {
    const session = sessionOf(ctx)
    if (ctx.trigger === 'onSessionEnd') this.#memory.endBeside(session)
    if (ctx.trigger === 'afterExecution' && !isKept(ctx)) this.#memory.endBeside(ctx.state.agentId)
    const fired = await this.#fire(ctx, { mode, signal })
    const outcome = ctx.trigger === 'afterStep' ? mergeOutcomes(fired, await this.#interruption(ctx, session)) : fired
    return mode === 'transform'
      ? this.#withState(ctx, { session, outcome, late: await this.#lateWords(ctx, session) })
      : outcome
  }

  /** Runs what judges a command before it becomes a text. */
  performExpansion(ctx: BaseContext, { mode, signal }: ActionRun): Promise<HookOutcome> {
    const payload = expansionPayload(ctx, makerFor(ctx, this.#around))
    return payload === undefined ? Promise.resolve({}) : this.#fireOne(ctx, payload, { mode, signal, args: undefined })
  }

  /** What came late is a matter of chance, so where the group is not recorded as a whole, this is. */
  async #lateWords(ctx: BaseContext, session: string): Promise<readonly string[]> {
    if (ctx.trigger === 'onSessionEnd' || !this.#table.hasAsync) return []
    return (await this.#remembered(ctx, 'late', () => this.#memory.takeLate(session))) as readonly string[]
  }

  /** A call was denied where no hook is, and the run is to end with its step. */
  async #interruption(ctx: BaseContext, session: string): Promise<HookOutcome> {
    if (!this.#options.isAsked) return {}
    const reason = await this.#remembered(ctx, 'interrupt', () => this.#memory.takeInterrupt(session) ?? null)
    return typeof reason === 'string' ? { votes: [stopVote(reason, 'PermissionRequest')] } : {}
  }

  async #remembered(ctx: BaseContext, name: string, take: () => Json): Promise<Json> {
    const { recorded } = this.#contextFor(ctx, ctx.signal)
    if (recorded === undefined) return take()
    const { other } = await recorded(name, () => Promise.resolve({ other: { [name]: take() } }))
    return other![name]!
  }

  async #fire(ctx: BaseContext, { mode, signal }: Pick<ActionRun, 'mode' | 'signal'>): Promise<HookOutcome> {
    const payloads = [...this.#setupDue(ctx), ...payloadsFor(ctx, this.#around)]
    let outcome: HookOutcome = {}
    for (let i = 0; i < payloads.length && outcome.decision !== 'block'; i++) {
      const named = i === 0 ? payloads[i]! : { ...payloads[i]!, part: `#${i}` }
      outcome = mergeOutcomes(outcome, await this.#fireOne(ctx, named, { mode, signal, args: outcome.args }))
      // What comes after the first is about the call as it will be made.
      if (i === 0 && outcome.args !== undefined)
        payloads.splice(1, Infinity, ...payloadsFor(ctx, { ...this.#around, args: outcome.args }).slice(1))
    }
    return outcome
  }

  /** Once, before the first conversation begins. */
  #setupDue(ctx: BaseContext): readonly Payload[] {
    const trigger = this.#setup
    if (trigger === undefined || ctx.trigger !== 'onSessionStart') return []
    this.#setup = undefined
    return [makerFor(ctx, this.#around)('Setup', { trigger }, trigger)]
  }

  async #fireOne(
    ctx: BaseContext,
    payload: Payload,
    { mode, signal, args }: Pick<ActionRun, 'mode' | 'signal'> & { readonly args: Json | undefined },
  ): Promise<HookOutcome> {
    if (payload.event === 'PreToolUse') this.#rememberCall(payload, ctx.state)
    if (!this.#table.has(payload.event)) return {}
    const context = this.#contextFor(ctx, signal)
    const result = await this.#run(payload, { ...this.#firingOf(ctx), context })
    tell(ctx, result, payload)
    const shown = payload.event === 'MessageDisplay' ? result.merged.other?.['displayContent'] : undefined
    if (typeof shown === 'string') this.#options.onDisplay?.(textOf(payload.input['delta']), shown)
    const allowed = withoutDefer(ctx, result)
    if (allowed !== result) warn(ctx, 'PreToolUse hook: "defer" is for a turn with a single call, and is ignored')
    const answered = await this.#answeredHere(ctx, allowed, context)
    const outcome = {
      ...toHookOutcome(ctx, payload, { merged: answered.merged, mode, args }),
      ...spentOn([...result.ran, ...(answered === allowed ? [] : answered.ran)]),
    }
    if (payload.event === 'SubagentStop' && outcome.votes !== undefined) {
      this.#memory.noteContinued(`${ctx.state.agentId}/${textOf(payload.input['agent_id'])}`)
    }
    return outcome
  }

  #firingOf(ctx: BaseContext): Omit<Fired, 'context'> {
    return { session: sessionOf(ctx), isActive: activeFor(ctx), isInspecting: isInspecting(ctx.state) }
  }

  async #run(
    payload: Payload,
    { session, isActive, isInspecting: inspects = false, context }: Fired,
  ): Promise<EventResult> {
    const beside = new AbortController()
    const result = await runEvent(this.#table, payload, {
      context,
      backgroundContext: { ...this.#options.context, signal: beside.signal },
      isActive,
      isInspecting: inspects,
      onceDone: this.#memory.onceDone(session),
      isBeside: (late) => {
        this.#memory.follow(session, late, { stop: beside, onWake: this.#options.onWake })
        void late.then(({ answer }) => beside.signal.aborted || this.#write(answer))
      },
    })
    for (const { answer } of result.ran) this.#write(answer)
    return result
  }

  /** Nothing reaches a terminal that is not known to be harmless there. */
  #write({ terminalSequence: sequence }: HandlerAnswer): void {
    if (sequence !== undefined && isTerminalSequence(sequence)) this.#options.terminal?.(sequence)
  }

  /** What a handler needs in this firing: where models are asked, what others say is recorded one by one. */
  #contextFor(ctx: BaseContext, signal: AbortSignal): HandlerContext {
    const { context, models } = this.#options
    if (!this.asksModels) return { ...context, signal }
    const { effects, place } = BaseContext.hostOf(ctx)
    const call = BaseContext.draftOf(ctx).facts['toolCall'] as ToolCall | undefined
    const base = `${place}/${ctx.trigger}/claude${call === undefined ? '' : `/${call.id}`}`
    return {
      ...context,
      signal,
      askModel: askingModel(ctx, models),
      askAgent: this.#inspectors.askIn(ctx),
      recorded: async (name, work) => {
        const key = `${base}/${name}`
        return effects.scope(key).perform<HandlerAnswer>({ key, kind: 'hook', input: () => null }, work)
      },
    }
  }

  #rememberCall({ input }: Payload, { agentId }: Pick<Asker, 'agentId'>): void {
    if (!this.#options.isAsked || !(this.#table.has('PermissionRequest') || this.#table.has('Notification'))) return
    const { session_id, transcript_path, cwd, prompt_id, agent_id, agent_type, tool_use_id } = input
    const common = { session_id, transcript_path, cwd, prompt_id, agent_id, agent_type }
    const there = Object.entries(common).filter((entry): entry is [string, Json] => entry[1] !== undefined)
    this.#memory.rememberCall(`${agentId}/${textOf(tool_use_id)}`, Object.fromEntries(there))
  }

  /** A question that hooks raise is put to those that answer questions, before a person hears of it. */
  async #answeredHere(ctx: BaseContext, result: EventResult, context: HandlerContext): Promise<EventResult> {
    if (result.merged.decision !== 'ask' || this.#options.isAsked || !this.#table.has('PermissionRequest'))
      return result
    const payload = permissionPayload(ctx, this.#around)
    const answered = await this.#run(payload, { ...this.#firingOf(ctx), context })
    tell(ctx, answered, payload)
    const { decision, reason, updatedInput, interrupt } = answered.merged
    if (decision !== 'allow' && decision !== 'deny') return result
    return {
      ...answered,
      merged: {
        ...result.merged,
        ...(updatedInput !== undefined && { updatedInput }),
        ...(interrupt === true
          ? { decision: 'stop', reason, beside: { decision: 'deny', reason } }
          : { decision, reason }),
      },
    }
  }

  /** What PermissionRequest hooks say to a call that is about to be put to a person. */
  async answerQuestion(call: ToolCall, asker: Asker, signal: AbortSignal): Promise<AskedAnswer | undefined> {
    if (!this.#table.has('PermissionRequest')) return undefined
    const known = this.#knownOf(call, asker)
    const context = { ...this.#options.context, signal }
    const { merged } = await this.#run(questionPayload(known, call, this.#around), { ...outsideRun(known), context })
    if (merged.decision === 'deny') {
      const reason = merged.reason === '' ? 'A hook said no.' : merged.reason
      if (merged.interrupt === true) this.#memory.interrupt(textOf(known['session_id']), reason)
      return { block: reason }
    }
    if (merged.decision !== 'allow') return undefined
    return merged.updatedInput === undefined ? 'allow' : { allow: fromClaudeInput(call.name, merged.updatedInput) }
  }

  /** Tells hooks that a person is being asked, who does not wait for them. */
  notify(call: ToolCall, asker: Asker): void {
    if (!this.#table.has('Notification')) return
    const known = this.#knownOf(call, asker)
    const fired = outsideRun(known)
    const stop = new AbortController()
    const ended = this.#memory.startBeside(fired.session, stop)
    const context = { ...this.#options.context, signal: stop.signal }
    const notice = noticePayload(known, call, this.#around)
    void this.#run(notice, { ...fired, context }).finally(ended)
  }

  /** Of a call that another process has judged, this one knows what the state says. */
  #knownOf({ id }: ToolCall, { agentId, state }: Asker): JsonObject {
    return this.#memory.recallCall(`${agentId}/${id}`) ?? commonFrom(state, sessionIn(state), this.#around)
  }

  /** What the group keeps in the state: which session it is, skills that are in force, and words that came late. */
  #withState(
    ctx: BaseContext,
    { session, outcome, late: words }: { session: string; outcome: HookOutcome; late: readonly string[] },
  ): HookOutcome {
    const late = lateMessages(words)
    const kept = this.#keptState(ctx, session)
    if (late.length === 0 && kept === undefined) return outcome
    const state: StateChange = {
      ...outcome.state,
      ...(late.length > 0 && { appended: [...late, ...(outcome.state?.appended ?? [])] }),
      ...(kept !== undefined && { metadata: { ...outcome.state?.metadata, [SESSION_KEY]: kept } }),
    }
    return { ...outcome, state }
  }

  #keptState(ctx: BaseContext, session: string): JsonObject | undefined {
    const before = keptIn(ctx)
    if (ctx.trigger === 'onSessionStart') return before['session'] === session ? undefined : { ...before, session }
    if (this.#options.skills.size === 0) return undefined
    const skills = skillsOf(ctx)
    const fresh = loadedSkills(ctx).filter((name) => this.#options.skills.has(name) && !skills.includes(name))
    return fresh.length === 0 ? undefined : { ...before, skills: [...new Set([...skills, ...fresh])] }
  }
}

type Fired = {
  readonly session: string
  readonly isActive: (source: HookSource) => boolean
  readonly isInspecting?: boolean
  readonly context: HandlerContext
}

/** Where somebody is asked there is no context: what belongs to a skill or an agent stays out. */
function outsideRun(known: JsonObject): Omit<Fired, 'context'> {
  return {
    session: textOf(known['session_id']),
    isActive: ({ kind }) => kind !== 'skill' && kind !== 'agent',
  }
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** A call can be left open only if it is the only one of its turn. */
function withoutDefer({ state }: BaseContext, result: EventResult): EventResult {
  if (result.merged.decision !== 'defer') return result
  const last = state.messages.at(-1)
  const calls = last?.content.filter((part) => part.type === 'tool-call').length ?? 0
  if (calls <= 1) return result
  const { decision: _defer, reason: _reason, ...rest } = result.merged
  return { ...result, merged: { ...rest, decision: 'none', reason: '' } }
}

/** What is for the user, and what went wrong without stopping anything. */
function tell(ctx: BaseContext, { merged, ran, problems }: EventResult, { event }: Payload): void {
  if (merged.systemMessage !== undefined) warn(ctx, merged.systemMessage)
  for (const problem of problems) warn(ctx, problem)
  for (const { answer } of ran) {
    if (answer.problem !== undefined) warn(ctx, `${event} hook: ${answer.problem}`)
    if (answer.terminalSequence !== undefined && !isTerminalSequence(answer.terminalSequence))
      warn(
        ctx,
        `${event} hook: its "terminalSequence" is not written, because it is more than titles, notifications and bells`,
      )
  }
}

function warn(ctx: BaseContext, message: string): void {
  const host = BaseContext.hostOf(ctx)
  host.effects.emit?.({ type: 'warning', step: host.step, message })
}
