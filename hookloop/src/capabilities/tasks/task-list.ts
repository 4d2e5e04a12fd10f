import { isJsonObject, type Json } from '../../state/json.ts'

export const taskStatuses = ['pending', 'in_progress', 'completed'] as const

export type TaskStatus = (typeof taskStatuses)[number]

export type Task = {
  /** What is to be done: "Run the tests". */
  readonly content: string
  readonly status: TaskStatus
  /** The same while it is being done: "Running the tests". */
  readonly activeForm?: string
}

/**
 * What is kept: the list, and when it was last written or shown to the model. A list alone is what the application wrote:
 * the model has not seen it.
 */
export type KeptTasks = {
  readonly tasks: readonly Task[]
  readonly execution: number
  readonly step: number
}

/** The list in what is kept, whoever wrote it. */
export function keptList(kept: Json | undefined): readonly Task[] {
  return toTasks(isJsonObject(kept) ? kept['tasks'] : kept)
}

/** Tasks out of any JSON, each on a line of its own. What is no task is left out: the state may come from anywhere. */
export function toTasks(json: Json | undefined): readonly Task[] {
  return Array.isArray(json) ? Object.freeze((json as readonly Json[]).flatMap(toTask)) : none
}

const none: readonly Task[] = Object.freeze([])

function toTask(json: Json): readonly Task[] {
  if (!isJsonObject(json)) return []
  const { content, status = 'pending', activeForm } = json
  if (typeof content !== 'string' || !isStatus(status)) return []
  const active = typeof activeForm === 'string' ? oneLine(activeForm) : ''
  const task = { content: oneLine(content), status, ...(active !== '' && { activeForm: active }) }
  return task.content === '' ? [] : [Object.freeze(task)]
}

export function isStatus(status: Json): status is TaskStatus {
  return (taskStatuses as readonly Json[]).includes(status)
}

/** A text without line breaks and other control characters: in a list, one task must not look like two. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
}

const boxes = { pending: '[ ]', in_progress: '[>]', completed: '[x]' } as const satisfies Record<TaskStatus, string>

/** The list for people and models: a task per line. With `markdown`, as a task list of GitHub's kind. */
export function renderList(tasks: readonly Task[], markdown = false): string {
  return tasks.map((task) => (markdown ? markdownLine(task) : `${boxes[task.status]} ${wordTask(task)}`)).join('\n')
}

function markdownLine(task: Task): string {
  const text = wordTask(task).replace(/[\\`*_{}[\]<>#|!~]/g, '\\$&')
  const box = task.status === 'completed' ? 'x' : ' '
  return `- [${box}] ${task.status === 'in_progress' ? `**${text}**` : text}`
}

/** What is being done is said as such, if the model gave the words. */
function wordTask({ content, status, activeForm }: Task): string {
  return status === 'in_progress' ? (activeForm ?? content) : content
}

/** How many there are of each, in words. */
export function countTasks(tasks: readonly Task[]): string {
  const count = (status: TaskStatus): number => tasks.filter((task) => task.status === status).length
  return `${count('completed')} of ${tasks.length} done, ${count('in_progress')} in progress`
}

export function isFinished(tasks: readonly Task[]): boolean {
  return tasks.every(({ status }) => status === 'completed')
}
