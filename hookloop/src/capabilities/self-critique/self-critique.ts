import type { Capability } from '../../agent/capability.ts'
import { checkOptions, definedOptions, invalidOption } from '../../agent/check-options.ts'
import type { AgentState } from '../../state/agent-state.ts'
import type { ModelSource } from '../../state/inference.ts'
import { isJsonObject, type Json } from '../../state/json.ts'
import { textOf } from '../../state/message.ts'
import { messageOf } from '../../errors.ts'
import { guard, hook, type Hook } from '../../hooks/hook.ts'
import { critiqueSchema, critiqueOf, feedbackOf, ownInstructions, promptFor, type Critique } from './critique.ts'

export type { Critique } from './critique.ts'

export type SelfCritiqueOptions = {
  /** The model that judges. Without it, that of the conversation. */
  readonly model?: ModelSource
  /** What a good answer is, in place of our own words. */
  readonly instructions?: string
  /** How often an answer is sent back, in one execution. */
  readonly maxRounds?: number
  /** What comes of a critic that cannot be asked, or gives no verdict: the run is stopped, or the answer stands. */
  readonly onFailure?: 'stop' | 'approve'
}

export const selfCritiquePolicy = Object.freeze({
  model: undefined,
  instructions: undefined,
  maxRounds: 2,
  onFailure: 'stop' as const,
})

/** Where the last verdict stands in the state's metadata. */
export const SELF_CRITIQUE_KEY = 'hookloop.selfCritique'

/** What is known of the answers of an execution. */
export type SelfCritique = {
  readonly execution: string
  /** What was asked for, at most 8,000 characters of it. */
  readonly task: string
  /** How often an answer was sent back. */
  readonly rounds: number
  /** How many steps had been taken when the verdict was given: it is about the answer of the last of them. */
  readonly steps?: number
  readonly critique?: Critique
  /** Whether that answer was sent back. */
  readonly sentBack?: boolean
  /** Why there is no verdict. */
  readonly failure?: string
}

type Policy = SelfCritiqueOptions & { readonly maxRounds: number; readonly onFailure: 'stop' | 'approve' }

/**
 * Has the final answer judged by a model, and sends it back with what is wrong with it, so often at most. A run is
 * completed only with an answer that was approved.
 */
export function selfCritique(options: SelfCritiqueOptions = {}): Capability {
  const policy = checked(options)
  const { model, maxRounds, onFailure } = policy
  return {
    name: 'selfCritique',
    hooks: [rememberHook(), judgeHook(policy), decideGuard(policy)],
    ...(model !== undefined && { models: [model] }),
    notes: [
      `Self-critique: answers are judged, sent back up to ${maxRounds} times; a failed critic means ${onFailure === 'stop' ? 'that the run is stopped' : 'approval'}.`,
    ],
  }
}

/** What is known of the answers of the last execution. */
export function getCritique(state: AgentState): SelfCritique | undefined {
  const kept: Json | undefined = state.metadata[SELF_CRITIQUE_KEY]
  if (!isJsonObject(kept) || kept['execution'] !== state.execution?.id) return undefined
  return kept as SelfCritique
}

function checked(options: SelfCritiqueOptions): Policy {
  checkOptions('selfCritique', options, Object.keys(selfCritiquePolicy))
  const policy = { ...selfCritiquePolicy, ...definedOptions(options) } as Policy
  const { maxRounds, onFailure, instructions } = policy
  if (!Number.isSafeInteger(maxRounds) || maxRounds < 0)
    throw invalidOption('selfCritique', '"maxRounds" must be a whole number from 0 up', maxRounds)
  if (onFailure !== 'stop' && onFailure !== 'approve')
    throw invalidOption('selfCritique', `"onFailure" is 'stop' or 'approve'`, onFailure)
  if (instructions !== undefined && (typeof instructions !== 'string' || instructions === ''))
    throw invalidOption('selfCritique', '"instructions" must be a text', instructions)
  return definedOptions(policy)
}

const MAX_TASK = 8_000

/** Keeps what was asked for, while it is the last message: it may be summed up before there is an answer. */
function rememberHook(): Hook {
  return hook(
    'beforeExecution',
    (ctx) => {
      const { messages, execution } = ctx.state
      const task = textOf(messages.findLast(({ role }) => role === 'user')?.content ?? []).slice(0, MAX_TASK)
      return ctx.withState((state) =>
        withKept(state, { execution: execution!.id, task: task.toWellFormed(), rounds: 0 }),
      )
    },
    { name: 'selfCritique.remember', priority: 200 },
  )
}

/** Asks the critic, and sends the answer back where it says so. */
function judgeHook({ model, instructions = ownInstructions, maxRounds }: Policy): Hook {
  return hook(
    'onStop',
    async (ctx) => {
      const kept = getCritique(ctx.state)
      if (ctx.outcome.stopReason !== 'completed' || kept === undefined) return ctx
      const { execution, task, rounds } = kept
      const known = { execution, task, rounds, steps: ctx.state.stepCount }
      let critique: Critique
      try {
        const asked = { system: instructions, prompt: promptFor(task, answerIn(ctx.state)), output: critiqueSchema }
        const { output } = await ctx.infer({ ...asked, ...(model !== undefined && { model }) })
        critique = critiqueOf(output)
      } catch (thrown) {
        return ctx.withState((state) => withKept(state, { ...known, failure: messageOf(thrown) }))
      }
      const sentBack = critique.verdict === 'revise' && rounds < maxRounds
      const judged = { ...known, rounds: rounds + Number(sentBack), critique, sentBack }
      const told = ctx.withState((state) => withKept(state, judged))
      return sentBack ? told.requestContinuation(feedbackOf(critique)) : told
    },
    { name: 'selfCritique.judge' },
  )
}

/** Says that a run is not completed whose last answer was not approved. */
function decideGuard({ maxRounds, onFailure }: Policy): Hook {
  return guard(
    'onStop',
    (ctx) => {
      if (ctx.outcome.stopReason !== 'completed' || isOfAnother(ctx.state)) return ctx
      const { steps, critique, failure, rounds = 0, sentBack } = getCritique(ctx.state) ?? {}
      if (steps !== ctx.state.stepCount || critique === undefined) {
        if (onFailure === 'approve') return ctx
        const why = failure ?? 'nobody was asked'
        return ctx.stop(`The critic gave no verdict: ${why}`, { reason: 'errorForbade' })
      }
      const { verdict, summary } = critique
      if (verdict === 'give_up') return ctx.stop(`The critic gave up: ${summary}`, { value: { rounds } })
      if (verdict === 'approve' || sentBack === true) return ctx
      const value = { value: rounds, limit: maxRounds }
      return ctx.stop(`Not approved after ${rounds} rounds: ${summary}`, { reason: 'retryLimit', value })
    },
    { name: 'selfCritique.decide' },
  )
}

/** Whether this is a subagent that nobody judges: its answer is a result for the agent it works for, whose own is judged. */
function isOfAnother(state: AgentState): boolean {
  return state.parentId !== undefined && getCritique(state) === undefined
}

/** The answer as it was given: in words, or to the tool that takes typed ones. */
function answerIn({ lastStep }: AgentState): string {
  const call = lastStep?.toolCalls.at(-1)
  return lastStep?.text === '' && call !== undefined ? JSON.stringify(call.args) : (lastStep?.text ?? '')
}

function withKept(state: AgentState, kept: SelfCritique): AgentState {
  return state.withMetadata(SELF_CRITIQUE_KEY, kept)
}
