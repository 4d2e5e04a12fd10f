import type { Capability } from '../../agent/capability.ts'
import { readOptions } from '../../state/check-options.ts'
import { tool, type Tool } from '../../agent/tool.ts'
import { checkState, type AgentState } from '../../state/agent-state.ts'
import { isJsonObject, type JsonObject } from '../../state/json.ts'
import { textOf, type Message } from '../../state/message.ts'
import { guard, hook, type Hook } from '../../hooks/hook.ts'
import { objectSchema } from '../../state/schema.ts'

/** Options of `retrospective`. */
export type RetrospectiveOptions = {
  /** How often an execution may be rewound. Default 3. */
  readonly maxRewinds?: number
  /** The length of the guidance. Default 4,000. */
  readonly maxGuidanceChars?: number
}

export const retrospectiveDefaults = Object.freeze({ maxRewinds: 3, maxGuidanceChars: 4_000 })

/** The metadata key of the checkpoint counters. */
export const RETROSPECTIVE_KEY = 'hookloop.retrospective'

const TOOL = 'execution_retrospective'

/**
 * Lets the model rewind: each step starts with a checkpoint, and the model can rewind the conversation to one of this
 * execution, with guidance for the next attempt. Steps and tokens that were used stay counted.
 *
 * @example
 * createAgent({ model, use: [retrospective({ maxRewinds: 2 })] })
 */
export function retrospective(options: RetrospectiveOptions = {}): Capability {
  const { maxRewinds, maxGuidanceChars } = readOptions('retrospective', options, retrospectiveDefaults)
  const rewind = rewindTool(maxGuidanceChars)
  return {
    name: 'retrospective',
    hooks: [instructHook(), markHook(), checkGuard(rewind, maxRewinds), noteHook(rewind), rewindHook(maxRewinds)],
    tools: [rewind],
    notes: [`Retrospective: an execution may be rewound ${maxRewinds} times. Effects of tools are not undone.`],
  }
}

/** How often the current execution has been rewound. */
export function getRewinds(state: AgentState): number {
  checkState('getRewinds', state)
  return progressOf(state).rewinds
}

const INSTRUCTIONS =
  `Messages such as [CHECKPOINT 3] mark the start of a step. If you notice that you have been on the wrong track since one
of them, call ${TOOL} with its number and with guidance for yourself: what went wrong, what you learned and what to do
instead. Everything after the checkpoint is removed from the conversation, and only the guidance is kept. What tools have
done in the meantime is not undone, so name what has changed.`.replaceAll('\n', ' ')

/** Adds the instructions once, even if other hooks have changed the prompt. */
function instructHook(): Hook {
  return hook(
    'beforeExecution',
    (ctx) => {
      if (ctx.state.systemPrompt.includes(INSTRUCTIONS)) return ctx
      return ctx.withState((state) => {
        const before = state.systemPrompt === '' ? '' : `${state.systemPrompt}\n\n`
        return state.withSystemPrompt(before + INSTRUCTIONS)
      })
    },
    { name: 'retrospective.instruct', bookkeeping: true, priority: -100 },
  )
}

/** At the start of a step every call has its result, so the conversation can be cut here. */
function markHook(): Hook {
  return hook(
    'beforeStep',
    (ctx) =>
      ctx.withState((state) => {
        const { next, first, ...progress } = progressOf(state)
        const marked = state.withMessage(markOf(next))
        return withProgress(marked, { ...progress, first, next: next + 1 })
      }),
    { name: 'retrospective.mark', bookkeeping: true, priority: -200 },
  )
}

function rewindTool(maxGuidanceChars: number): Tool<JsonObject, JsonObject> {
  return tool({
    name: TOOL,
    description:
      'Rewinds this task to a checkpoint if you have been on the wrong track since: everything after it is removed from the conversation, ' +
      'except for your guidance. What tools have done is not undone.',
    input: objectSchema(
      {
        checkpoint_id: { type: 'integer', minimum: 0, description: 'The number in a message such as [CHECKPOINT 3].' },
        guidance: {
          type: 'string',
          minLength: 1,
          maxLength: maxGuidanceChars,
          description: 'What went wrong, what you learned, and what to do instead.',
        },
      },
      ['checkpoint_id', 'guidance'],
    ),
    execute: ({ checkpoint_id }) => `The conversation will be rewound to checkpoint ${checkpoint_id as number}.`,
  })
}

/** A guard, because it decides on the arguments that are really used. */
function checkGuard(rewind: Tool<JsonObject, JsonObject>, maxRewinds: number): Hook {
  return guard(
    'beforeToolUse',
    (ctx) => {
      const { rewinds, wanted } = progressOf(ctx.state)
      const id = ctx.toolCall.args['checkpoint_id'] as number
      if (rewinds >= maxRewinds) return ctx.block(`This task was rewound ${rewinds} times already. Continue from here.`)
      if (wanted !== undefined) return ctx.block(`A rewind to checkpoint ${wanted.id} is requested already.`)
      if (placeOf(ctx.state, id) !== undefined) return ctx
      const ids = checkpointsIn(ctx.state).join(', ') || 'none'
      return ctx.block(`There is no checkpoint ${id} in this task. Checkpoints: ${ids}.`)
    },
    { name: 'retrospective.check', priority: 100, tool: rewind },
  )
}

function noteHook(rewind: Tool<JsonObject, JsonObject>): Hook {
  return hook(
    'afterToolUse',
    (ctx) => {
      if (ctx.toolExecution.status !== 'ok') return ctx
      const { checkpoint_id: id, guidance } = ctx.toolCall.args as { checkpoint_id: number; guidance: string }
      return ctx.withState((state) => withProgress(state, { ...progressOf(state), wanted: { id, guidance } }))
    },
    { name: 'retrospective.note', bookkeeping: true, priority: 100, tool: rewind },
  )
}

/** Rewinds when the step is closed: its calls have their results then. */
function rewindHook(maxRewinds: number): Hook {
  return hook(
    'afterStep',
    (ctx) => {
      const { wanted, ...progress } = progressOf(ctx.state)
      if (wanted === undefined) return ctx
      const at = placeOf(ctx.state, wanted.id)
      const rewinds = progress.rewinds + 1
      if (at === undefined) return ctx.withState((state) => withProgress(state, progress)) // removed by another hook
      const message = `Rewound to checkpoint ${wanted.id} (${rewinds} of ${maxRewinds}).`
      return ctx
        .withState((state) => {
          const cut = state
            .withMessages(state.messages.slice(0, at))
            .withMessage(guidanceMessage(message, wanted.guidance))
          return withProgress(cut, { ...progress, rewinds })
        })
        .allowContinuation(message)
    },
    { name: 'retrospective.rewind', priority: -100, when: ({ state }) => progressOf(state).wanted !== undefined },
  )
}

function guidanceMessage(message: string, guidance: string): string {
  return `[${message} Everything after it was removed.]\nYou left yourself this guidance:\n${guidance}`
}

/** Numbers are never reused in a conversation, so that a removed checkpoint cannot be meant. */
type Progress = {
  readonly execution: number
  /** The first checkpoint of this execution. Earlier ones belong to other tasks. */
  readonly first: number
  readonly next: number
  readonly rewinds: number
  readonly wanted?: { readonly id: number; readonly guidance: string }
}

function progressOf(state: AgentState): Progress {
  const stored = state.metadata[RETROSPECTIVE_KEY]
  const known = isJsonObject(stored) && typeof stored['next'] === 'number' ? (stored as unknown as Progress) : undefined
  if (known?.execution === state.executionCount) return known
  const next = known?.next ?? 0
  return { execution: state.executionCount, first: next, next, rewinds: 0 }
}

function withProgress(state: AgentState, progress: Progress): AgentState {
  return state.withMetadata(RETROSPECTIVE_KEY, progress)
}

function markOf(id: number): string {
  return `[CHECKPOINT ${id}]`
}

/** The number of a checkpoint, if the message is one. */
function idOf({ role, content }: Message): number | undefined {
  const [, id] = (role === 'user' && content.length === 1 && /^\[CHECKPOINT (\d{1,9})\]$/.exec(textOf(content))) || []
  return id === undefined ? undefined : Number(id)
}

/** The index of a checkpoint of this execution, if it still exists. */
function placeOf(state: AgentState, id: number): number | undefined {
  const { first, next } = progressOf(state)
  if (id < first || id >= next) return undefined
  const at = state.messages.findLastIndex((message) => idOf(message) === id)
  return at === -1 ? undefined : at
}

function checkpointsIn(state: AgentState): readonly number[] {
  const { first, next } = progressOf(state)
  return state.messages.flatMap((message) => {
    const id = idOf(message)
    return id === undefined || id < first || id >= next ? [] : [id]
  })
}
