export type { Task, TaskStatus } from './task-list.ts'
export { getEventTasks, getTasks, renderTasks, tasks, withTasks, type TasksOptions } from './tasks.ts'
