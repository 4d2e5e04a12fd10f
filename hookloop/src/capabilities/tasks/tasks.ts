import type { Capability } from '../../agent/capability.ts'
import { checkOptions, checkPositiveIntegers, definedOptions, invalidOption } from '../../agent/check-options.ts'
import { tool, type Tool } from '../../agent/tool.ts'
import { TASKS_KEY, type AgentState } from '../../state/agent-state.ts'
import type { AgentEvent } from '../../state/event.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { hook, type Hook } from '../../hooks/hook.ts'
import {
  countTasks,
  isFinished,
  keptList,
  renderList,
  taskStatuses,
  toTasks,
  type KeptTasks,
  type Task,
} from './task-list.ts'

export type TasksOptions = {
  readonly maxItems?: number
  readonly maxInProgress?: number
  /** Characters of a task's words. */
  readonly maxChars?: number
  /** After so many steps without an update the model is shown its list. `null`: never. */
  readonly reminderEverySteps?: number | null
}

export const tasksPolicy = Object.freeze({ maxItems: 20, maxInProgress: 1, maxChars: 500, reminderEverySteps: 10 })

const TOOL = 'todo_write'

type Limits = { readonly maxItems: number; readonly maxInProgress: number; readonly maxChars: number }

/** A list of tasks that the model writes and people see, with a reminder when it is forgotten. */
export function tasks(options: TasksOptions = {}): Capability {
  checkOptions('tasks', options, Object.keys(tasksPolicy))
  const { reminderEverySteps, ...limits } = { ...tasksPolicy, ...definedOptions(options) }
  checkPositiveIntegers('tasks', limits, ['maxItems', 'maxInProgress', 'maxChars'])
  if (reminderEverySteps !== null) checkPositiveIntegers('tasks', { reminderEverySteps }, ['reminderEverySteps'])
  const write = writeTool(limits)
  return {
    name: 'tasks',
    hooks: [keepHook(write), showHook(reminderEverySteps)],
    tools: [write],
    notes: [`Tasks: up to ${limits.maxItems}, ${wordReminder(reminderEverySteps)}.`],
  }
}

/** The tasks as they are now. */
export function getTasks(state: AgentState): readonly Task[] {
  return keptList(state.metadata[TASKS_KEY])
}

/** The tasks that an event has just set, if it has: for whoever shows them while a run goes on. */
export function getEventTasks(event: AgentEvent): readonly Task[] | undefined {
  if (event.type !== 'toolFinished' || event.call.name !== TOOL || event.execution.status !== 'ok') return undefined
  return toTasks(event.call.args['todos'])
}

/** A state with these tasks. The model is shown them with its next step. */
export function withTasks(state: AgentState, list: readonly Task[]): AgentState {
  const known = toTasks(list)
  if (known.length !== list.length) {
    const statuses = taskStatuses.join(', ')
    throw invalidOption('withTasks', `a task has a content and a status of ${statuses}, and one of these has not`, list)
  }
  return state.withMetadata(TASKS_KEY, known)
}

/** Tasks as text for people, one per line: `[x]` done, `[>]` in progress, `[ ]` to do. Or as Markdown. */
export function renderTasks(of: AgentState | readonly Task[], format: 'text' | 'markdown' = 'text'): string {
  return renderList('metadata' in of ? getTasks(of) : of, format === 'markdown')
}

function writeTool(limits: Limits): Tool<JsonObject, JsonObject> {
  const { maxItems, maxInProgress, maxChars } = limits
  const words = { type: 'string', minLength: 1, maxLength: maxChars }
  return tool({
    name: TOOL,
    description:
      'Writes the list of tasks for work of three steps or more; the people you work for see it. ' +
      'Each call replaces the whole list: give all tasks, also those that are done. ' +
      'Mark a task in_progress before you begin it and completed as soon as it is done. ' +
      `At most ${maxItems} tasks, of which ${maxInProgress} in_progress.`,
    input: {
      type: 'object',
      properties: {
        todos: {
          type: 'array',
          maxItems,
          items: {
            type: 'object',
            properties: {
              content: { ...words, description: 'What is to be done, such as "Run the tests".' },
              status: { type: 'string', enum: [...taskStatuses] },
              activeForm: { ...words, description: 'The same while it is being done: "Running the tests".' },
            },
            required: ['content', 'status'],
            additionalProperties: false,
          },
        },
      },
      required: ['todos'],
      additionalProperties: false,
    },
    execute: ({ todos }) => {
      const list = toTasks(todos)
      const problem = problemOf(list, todos as readonly Json[], maxInProgress)
      if (problem !== undefined) throw new Error(problem)
      return list.length === 0 ? 'The list is empty now.' : `The list is kept: ${countTasks(list)}.`
    },
  })
}

function problemOf(list: readonly Task[], given: readonly Json[], maxInProgress: number): string | undefined {
  if (list.length !== given.length) return 'A task needs words. One of these has none.'
  const running = list.filter(({ status }) => status === 'in_progress').length
  if (running <= maxInProgress) return undefined
  return `${running} tasks are in_progress, and at most ${maxInProgress} may be. Leave the others pending.`
}

function keepHook(write: Tool<JsonObject, JsonObject>): Hook {
  return hook(
    'afterToolUse',
    (ctx) => {
      if (ctx.toolExecution.status !== 'ok') return ctx
      const list = toTasks(ctx.toolCall.args['todos'])
      return ctx.withState((state) => keep(state, list, state.stepCount + 1)) // the step at hand is not closed yet
    },
    { name: 'tasks.keep', priority: 100, tool: write },
  )
}

/** A list that the model knows, and since which step. */
function keep(state: AgentState, list: readonly Task[], step: number): AgentState {
  const kept: KeptTasks = { tasks: list, execution: state.executionCount, step }
  return state.withMetadata(TASKS_KEY, kept)
}

/**
 * Shows the list to the model: when the application has written it, and when it has not been touched for long. As a
 * message at the end of the conversation that stays there, so that what a provider has cached of it stays valid.
 */
function showHook(everySteps: number | null): Hook {
  return hook(
    'beforeStep',
    (ctx) => {
      const kept = ctx.state.metadata[TASKS_KEY]
      if (kept === undefined) return ctx
      const isNew = !isJsonObject(kept)
      if (!isNew && (everySteps === null || stepsSince(ctx.state, kept) < everySteps)) return ctx
      const list = keptList(kept)
      if (list.length === 0 || (!isNew && isFinished(list))) return ctx
      const words = isNew ? 'The list of tasks has been set for you.' : `No task was updated in ${everySteps} steps.`
      const message = `${words} ${HOW}\n\n${renderList(list)}`
      return ctx.withState((state) => keep(state.withMessage(message), list, state.stepCount))
    },
    { name: 'tasks.show', priority: -100 },
  )
}

const HOW = `Keep it up to date with ${TOOL}. These are notes on the work, not instructions:`

function stepsSince(state: AgentState, { execution, step }: JsonObject): number {
  return state.stepCount - (execution === state.executionCount && typeof step === 'number' ? step : 0)
}

function wordReminder(everySteps: number | null): string {
  return everySteps === null ? 'without reminders' : `shown to the model after ${everySteps} steps without an update`
}
