export { getEventTasks, getTasks, renderTasks, tasks, withTasks, type TasksOptions } from './tasks.ts'
export type { Task, TaskStatus } from '../../values/tasks.ts'
