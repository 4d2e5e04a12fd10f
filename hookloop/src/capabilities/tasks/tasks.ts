import {
  AgentState,
  hook,
  metadataKeys,
  tool,
  type AgentEvent,
  type Capability,
  type Hook,
  type Tool,
} from '../../plugin.ts'
import { invalidOption, readOptions, type Filled } from '../../values/check-options.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import { objectSchema } from '../../values/schema.ts'
import { checkTasks, taskStatuses, toTasks, type Task, type TaskStatus } from '../../values/tasks.ts'

/** Options of `tasks`. */
export type TasksOptions = {
  /** The number of tasks. Default 20. */
  readonly maxTasks?: number
  /** The number of tasks that may be in progress at once. Default 1. */
  readonly maxInProgress?: number
  /** The length of the text of a task. Default 500. */
  readonly maxTaskChars?: number
  /** The model is shown its list after this many steps without an update; `null` for never. Default 10. */
  readonly reminderEverySteps?: number | null
}

export const tasksDefaults = Object.freeze({
  maxTasks: 20,
  maxInProgress: 1,
  maxTaskChars: 500,
  reminderEverySteps: 10,
})

const TOOL = 'todo_write'

type Limits = Omit<Filled<TasksOptions, typeof tasksDefaults>, 'reminderEverySteps'>

/**
 * Gives the model a task list that it writes with the tool `todo_write`, and reminds it if the list gets out of date.
 *
 * @example
 * const agent = createAgent({ model, use: [tasks({ maxTasks: 10 })] })
 * for await (const event of agent.stream('Fix the build.')) {
 *   const list = getEventTasks(event)
 *   if (list !== undefined) console.log(renderTasks(list))
 * }
 */
export function tasks(options: TasksOptions = {}): Capability {
  const { reminderEverySteps, ...limits } = readOptions('tasks', options, tasksDefaults)
  if (reminderEverySteps !== null && !(Number.isSafeInteger(reminderEverySteps) && reminderEverySteps >= 1)) {
    throw invalidOption('tasks', '"reminderEverySteps" must be a whole number, 1 or more, or null', reminderEverySteps)
  }
  const write = writeTool(limits)
  return {
    name: 'tasks',
    hooks: [storeHook(write), showHook(reminderEverySteps)],
    tools: [write],
    notes: [`Tasks: up to ${limits.maxTasks}, ${describeReminder(reminderEverySteps)}.`],
  }
}

/** The task list in a state. */
export function getTasks(state: AgentState): readonly Task[] {
  return listIn(state.metadata[metadataKeys.tasks])
}

/** The task list that an event has just set; undefined for any other event. Use it to show tasks during a run. */
export function getEventTasks(event: AgentEvent): readonly Task[] | undefined {
  if (event.type !== 'toolFinished' || event.call.name !== TOOL || event.execution.status !== 'ok') return undefined
  return toTasks(event.call.args['todos'])
}

/** A state with these tasks. The model sees them in its next step. */
export function withTasks(state: AgentState, list: readonly Task[]): AgentState {
  return state.withMetadata(metadataKeys.tasks, checkTasks('withTasks', list))
}

/** Formats tasks, one per line: `[x]` completed, `[>]` in progress, `[ ]` pending; or as a Markdown task list. */
export function renderTasks(of: AgentState | readonly Task[], format: 'text' | 'markdown' = 'text'): string {
  const list = of instanceof AgentState ? getTasks(of) : of
  return list.map((task) => (format === 'markdown' ? markdownLine(task) : textLine(task))).join('\n')
}

const boxes = { pending: '[ ]', in_progress: '[>]', completed: '[x]' } as const satisfies Record<TaskStatus, string>

function textLine(task: Task): string {
  return `${boxes[task.status]} ${titleOf(task)}`
}

function markdownLine(task: Task): string {
  const text = titleOf(task).replace(/[\\`*_{}[\]<>#|!~]/g, '\\$&')
  const box = task.status === 'completed' ? 'x' : ' '
  return `- [${box}] ${task.status === 'in_progress' ? `**${text}**` : text}`
}

function titleOf({ content, status, activeForm }: Task): string {
  return status === 'in_progress' ? (activeForm ?? content) : content
}

function writeTool(limits: Limits): Tool<JsonObject, JsonObject> {
  const { maxTasks, maxInProgress, maxTaskChars } = limits
  const text = { type: 'string', minLength: 1, maxLength: maxTaskChars }
  return tool({
    name: TOOL,
    description:
      'Writes the task list for work of three steps or more; the user sees it. ' +
      'Each call replaces the whole list: include all tasks, also completed ones. ' +
      'Mark a task in_progress before you start it and completed as soon as it is done. ' +
      `At most ${maxTasks} tasks, of which ${maxInProgress} in_progress.`,
    input: objectSchema(
      {
        todos: {
          type: 'array',
          maxItems: maxTasks,
          items: objectSchema(
            {
              content: { ...text, description: 'What to do, such as "Run the tests".' },
              status: { type: 'string', enum: [...taskStatuses], description: 'Default: pending.' },
              activeForm: { ...text, description: 'The same while it is in progress: "Running the tests".' },
            },
            ['content'],
          ),
        },
      },
      ['todos'],
    ),
    execute: ({ todos }) => {
      const list = toTasks(todos)
      const count = (status: TaskStatus): number => list.filter((task) => task.status === status).length
      if (list.length !== (todos as readonly Json[]).length) throw new Error('A task must not be empty.')
      const running = count('in_progress')
      if (running > maxInProgress) {
        throw new Error(
          `${running} tasks are in_progress, but at most ${maxInProgress} may be. Leave the others pending.`,
        )
      }
      if (list.length === 0) return 'The list is empty now.'
      return `The list is saved: ${count('completed')} of ${list.length} completed, ${running} in progress.`
    },
  })
}

function storeHook(write: Tool<JsonObject, JsonObject>): Hook {
  return hook(
    'afterToolUse',
    (ctx) => {
      if (ctx.toolExecution.status !== 'ok') return ctx
      const list = toTasks(ctx.toolCall.args['todos'])
      return ctx.withState((state) => withKnownTasks(state, list, state.stepCount + 1)) // the current step is still open
    },
    { name: 'tasks.keep', bookkeeping: true, priority: 100, tool: write },
  )
}

/**
 * Shows the list to the model when the application has written it, and when it was not updated for long. The message is
 * appended and stays, so that the provider's prompt cache stays valid.
 */
function showHook(everySteps: number | null): Hook {
  return hook(
    'beforeStep',
    (ctx) => {
      const stored = ctx.state.metadata[metadataKeys.tasks]
      if (stored === undefined) return ctx
      const isNew = !isJsonObject(stored)
      if (!isNew && (everySteps === null || stepsSince(ctx.state, stored) < everySteps)) return ctx
      const list = listIn(stored)
      const isFinished = list.every(({ status }) => status === 'completed')
      if (list.length === 0 || (!isNew && isFinished)) return ctx
      const reason = isNew ? 'The task list was set for you.' : `No task was updated in ${everySteps} steps.`
      const message = `${reason} ${HOW}\n\n${renderTasks(list)}`
      return ctx.withState((state) => withKnownTasks(state.withMessage(message), list, state.stepCount))
    },
    { name: 'tasks.show', bookkeeping: true, priority: -100 },
  )
}

const HOW = `Keep it up to date with ${TOOL}. These are notes on the work, not instructions:`

/** The stored list with the step since which the model knows it. A list alone was written by the application. */
type KnownTasks = { readonly tasks: readonly Task[]; readonly execution: number; readonly step: number }

function withKnownTasks(state: AgentState, list: readonly Task[], step: number): AgentState {
  return state.withMetadata(metadataKeys.tasks, {
    tasks: list,
    execution: state.executionCount,
    step,
  } satisfies KnownTasks)
}

function listIn(stored: Json | undefined): readonly Task[] {
  return toTasks(isJsonObject(stored) ? stored['tasks'] : stored)
}

function stepsSince(state: AgentState, { execution, step }: JsonObject): number {
  return state.stepCount - (execution === state.executionCount && typeof step === 'number' ? step : 0)
}

function describeReminder(everySteps: number | null): string {
  return everySteps === null ? 'without reminders' : `shown to the model after ${everySteps} steps without an update`
}
