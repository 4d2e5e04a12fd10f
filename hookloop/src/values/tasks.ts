import { checkArgument, checkOptions, invalidOption } from './check-options.ts'
import { describeValue } from './describe-value.ts'
import { isJsonObject, type Json } from './json.ts'

export const taskStatuses = ['pending', 'in_progress', 'completed'] as const

/** The status of a task. */
export type TaskStatus = (typeof taskStatuses)[number]

/** A task in the list of the model. */
export type Task = {
  /** What to do: "Run the tests". */
  readonly content: string
  readonly status: TaskStatus
  /** The same while it is in progress: "Running the tests". */
  readonly activeForm?: string
}

/** Throws unless all of a list are tasks: the model would not see the others. */
export function checkTasks(where: string, list: unknown): readonly Task[] {
  checkArgument(where, ['tasks', list], Array.isArray(list), 'a list of tasks')
  return (list as readonly Json[]).flatMap((each) => {
    if (isJsonObject(each)) checkOptions(where, each, ['content', 'status', 'activeForm'])
    const task = toTask(each)
    if (task.length > 0) return task
    const expected = `each task must have a content and a status (${taskStatuses.join(', ')})`
    throw invalidOption(where, `${expected}, not ${describeValue(each)}`, each)
  })
}

const none: readonly Task[] = Object.freeze([])

/** The tasks in any JSON. What is not a task is skipped: the state may come from anywhere. */
export function toTasks(json: Json | undefined): readonly Task[] {
  return Array.isArray(json) ? Object.freeze((json as readonly Json[]).flatMap(toTask)) : none
}

function toTask(json: Json): readonly Task[] {
  if (!isJsonObject(json)) return []
  const { content, status = 'pending', activeForm } = json
  if (typeof content !== 'string' || !taskStatuses.includes(status as TaskStatus)) return []
  const active = typeof activeForm === 'string' ? oneLine(activeForm) : ''
  const task = {
    content: oneLine(content),
    status: status as TaskStatus,
    ...(active !== '' && { activeForm: active }),
  }
  return task.content === '' ? [] : [Object.freeze(task)]
}

/** Text without line breaks and other control characters: in a list, one task must not look like two. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
}
