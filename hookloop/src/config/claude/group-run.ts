import type { AskedAnswer } from '../../agent/capability.ts'
import { isJsonObject, type Json, type JsonObject } from '../../data/json.ts'
import type { ToolCall, ToolExecution } from '../../data/tool-call.ts'
import type { ActionRun } from '../../hooks/action.ts'
import type { ModelSource } from '../../data/inference.ts'
import { Context } from '../../hooks/draft.ts'
import type { HookOutcome, StateChange } from '../../hooks/outcome.ts'
import type { HookSource } from './handlers.ts'
import { HookMemory } from './hook-memory.ts'
import {
  payloadFor,
  permissionPayload,
  questionPayload,
  SESSION_KEY,
  sessionOf,
  subagentOf,
  type Payload,
  type PayloadSurroundings,
} from './payload.ts'
import { runEvent, type EventResult, type HookTable } from './run-event.ts'
import type { HandlerWorld } from './run-handler.ts'
import { lateMessages, toHookOutcome } from './to-outcome.ts'
import { fromClaudeInput } from './tool-names.ts'
import { askingModel } from './ask-model.ts'
import type { HandlerAnswer } from './handler-answer.ts'
import { Transcripts } from './transcript.ts'

type GroupOptions = {
  readonly world: HandlerWorld
  /** What handlers call models. */
  readonly models: { readonly [name: string]: ModelSource }
  /** Skills that bring hooks. */
  readonly skills: ReadonlySet<string>
  /** Whether questions are answered where a person is asked, and so not here. */
  readonly isAsked: boolean
}

/** All handlers of a project as one: what it does when a trigger fires. */
export class GroupRun {
  readonly #table: HookTable
  readonly #options: GroupOptions
  readonly #around: PayloadSurroundings
  readonly #memory = new HookMemory()

  constructor(table: HookTable, options: GroupOptions) {
    this.#table = table
    this.#options = options
    const { cwd } = options.world
    this.#around = { cwd, transcripts: new Transcripts(cwd), isContinued: (call) => this.#memory.isContinued(call) }
  }

  /** Whether it asks models itself, with the context of a hook. */
  get asksModels(): boolean {
    return this.#table.asksModels && this.#options.world.askModel === undefined
  }

  /** Runs what fires now. */
  async perform(ctx: Context, { mode, signal }: ActionRun): Promise<HookOutcome> {
    const session = sessionOf(ctx)
    if (ctx.trigger === 'onSessionEnd' || (ctx.trigger === 'afterExecution' && !isKept(ctx))) {
      this.#memory.endBeside(session)
    }
    const outcome = await this.#fire(ctx, { mode, signal })
    return mode === 'transform'
      ? this.#withState(ctx, { session, outcome, late: await this.#lateWords(ctx, session) })
      : outcome
  }

  /** What came late is a matter of chance, so where the group is not recorded as a whole, this is. */
  async #lateWords(ctx: Context, session: string): Promise<readonly string[]> {
    if (ctx.trigger === 'onSessionEnd' || !this.#table.hasAsync) return []
    const { recorded } = this.#worldFor(ctx, ctx.signal)
    if (recorded === undefined) return this.#memory.takeLate(session)
    const { other } = await recorded('late', () => Promise.resolve({ other: { late: this.#memory.takeLate(session) } }))
    return other!['late'] as readonly string[]
  }

  async #fire(ctx: Context, { mode, signal }: Pick<ActionRun, 'mode' | 'signal'>): Promise<HookOutcome> {
    const payload = payloadFor(ctx, this.#around)
    if (payload === undefined) return {}
    if (payload.event === 'PreToolUse') this.#rememberCall(payload)
    if (!this.#table.has(payload.event)) return {}
    const world = this.#worldFor(ctx, signal)
    const result = await this.#run(payload, { session: sessionOf(ctx), isActive: activeFor(ctx), world })
    tell(ctx, result, payload)
    const allowed = withoutDefer(ctx, result)
    if (allowed !== result) warn(ctx, 'PreToolUse hook: "defer" is for a turn with a single call, and is ignored')
    const answered = await this.#answeredHere(ctx, allowed, world)
    const outcome = toHookOutcome(ctx, payload, { merged: answered.merged, mode })
    if (payload.event === 'SubagentStop' && outcome.votes !== undefined) {
      this.#memory.noteContinued(textOf(payload.input['agent_id']))
    }
    return outcome
  }

  #run(
    payload: Payload,
    { session, isActive, world }: { session: string; isActive: (source: HookSource) => boolean; world: HandlerWorld },
  ): Promise<EventResult> {
    const beside = new AbortController()
    return runEvent(this.#table, payload, {
      world,
      besideWorld: { ...this.#options.world, signal: beside.signal },
      isActive,
      onceDone: this.#memory.onceDone(session),
      isBeside: (late) => this.#memory.follow(session, late, beside),
    })
  }

  /** What a handler needs in this firing: where models are asked, what others say is recorded one by one. */
  #worldFor(ctx: Context, signal: AbortSignal): HandlerWorld {
    const { world, models } = this.#options
    if (!this.asksModels) return { ...world, signal }
    const { effects, place } = Context.hostOf(ctx)
    const call = Context.draftOf(ctx).facts['toolCall'] as ToolCall | undefined
    const base = `${place}/${ctx.trigger}/claude${call === undefined ? '' : `/${call.id}`}`
    return {
      ...world,
      signal,
      askModel: askingModel(ctx, models),
      recorded: async (name, work) => {
        const key = `${base}/${name}`
        return effects.scope(key).perform<HandlerAnswer>({ key, kind: 'hook', input: () => null }, work)
      },
    }
  }

  #rememberCall({ input }: Payload): void {
    if (!this.#options.isAsked || !this.#table.has('PermissionRequest')) return
    const { session_id, transcript_path, cwd, prompt_id, agent_id, agent_type, tool_use_id } = input
    const common = { session_id, transcript_path, cwd, prompt_id, agent_id, agent_type }
    const there = Object.entries(common).filter((entry): entry is [string, Json] => entry[1] !== undefined)
    this.#memory.rememberCall(textOf(tool_use_id), Object.fromEntries(there))
  }

  /** A question that hooks raise is put to those that answer questions, before a person hears of it. */
  async #answeredHere(ctx: Context, result: EventResult, world: HandlerWorld): Promise<EventResult> {
    if (result.merged.decision !== 'ask' || this.#options.isAsked || !this.#table.has('PermissionRequest'))
      return result
    const payload = permissionPayload(ctx, this.#around)
    const answered = await this.#run(payload, { session: sessionOf(ctx), isActive: activeFor(ctx), world })
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
  async answerQuestion(call: ToolCall, signal: AbortSignal): Promise<AskedAnswer | undefined> {
    if (!this.#table.has('PermissionRequest')) return undefined
    const known: JsonObject = this.#memory.recallCall(call.id) ?? { session_id: '', cwd: this.#around.cwd }
    const payload = questionPayload(known, call, this.#around)
    const { merged } = await this.#run(payload, {
      session: textOf(known['session_id']),
      isActive: ({ kind }) => kind !== 'skill' && kind !== 'agent',
      world: { ...this.#options.world, signal },
    })
    if (merged.decision === 'deny') return { block: merged.reason === '' ? 'A hook said no.' : merged.reason }
    if (merged.decision !== 'allow') return undefined
    return merged.updatedInput === undefined ? 'allow' : { allow: fromClaudeInput(call.name, merged.updatedInput) }
  }

  /** What the group keeps in the state: which session it is, skills that are in force, and words that came late. */
  #withState(
    ctx: Context,
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

  #keptState(ctx: Context, session: string): JsonObject | undefined {
    const before = keptIn(ctx)
    if (ctx.trigger === 'onSessionStart') return before['session'] === session ? undefined : { ...before, session }
    const loaded = ctx.trigger === 'afterToolUse' ? loadedSkill(ctx) : undefined
    if (loaded === undefined || !this.#options.skills.has(loaded)) return undefined
    const skills = skillsOf(ctx)
    return skills.includes(loaded) ? undefined : { ...before, skills: [...skills, loaded] }
  }
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

function keptIn({ state }: Context): JsonObject {
  const kept = state.metadata[SESSION_KEY]
  return isJsonObject(kept) ? kept : {}
}

function isKept(ctx: Context): boolean {
  return keptIn(ctx)['session'] !== undefined
}

function skillsOf(ctx: Context): readonly string[] {
  const { skills } = keptIn(ctx)
  return Array.isArray(skills) ? skills.filter((each) => typeof each === 'string') : []
}

function loadedSkill(ctx: Context): string | undefined {
  const { toolCall, toolExecution } = Context.draftOf(ctx).facts as {
    readonly toolCall: ToolCall
    readonly toolExecution: ToolExecution
  }
  const name = toolCall.args['skill_name'] ?? toolCall.args['skill']
  const isLoaded = (toolCall.name === 'load_skill' || toolCall.name === 'Skill') && toolExecution.status === 'ok'
  return isLoaded && typeof name === 'string' ? name : undefined
}

/** Hooks of a skill are in force once it was loaded; those of an agent while it runs, and when it ends. */
function activeFor(ctx: Context): (source: HookSource) => boolean {
  const skills = skillsOf(ctx)
  const { subagent } = Context.draftOf(ctx).facts as { readonly subagent?: { readonly name: string } }
  const agent = subagent?.name ?? subagentOf(ctx.state)
  return ({ kind, name }) => {
    if (kind === 'skill') return name !== undefined && skills.includes(name)
    return kind !== 'agent' || (name !== undefined && name === agent)
  }
}

/** A call can be left open only if it is the only one of its turn. */
function withoutDefer({ state }: Context, result: EventResult): EventResult {
  if (result.merged.decision !== 'defer') return result
  const last = state.messages.at(-1)
  const calls = last?.content.filter((part) => part.type === 'tool-call').length ?? 0
  if (calls <= 1) return result
  const { decision: _defer, reason: _reason, ...rest } = result.merged
  return { ...result, merged: { ...rest, decision: 'none', reason: '' } }
}

/** What is for the user, and what went wrong without stopping anything. */
function tell(ctx: Context, { merged, ran, problems }: EventResult, { event }: Payload): void {
  if (merged.systemMessage !== undefined) warn(ctx, merged.systemMessage)
  for (const problem of problems) warn(ctx, problem)
  for (const { answer } of ran) if (answer.problem !== undefined) warn(ctx, `${event} hook: ${answer.problem}`)
}

function warn(ctx: Context, message: string): void {
  const host = Context.hostOf(ctx)
  host.effects.emit?.({ type: 'warning', step: host.step, message })
}
