export { getEventTasks, getTasks, renderTasks, tasks, withTasks, type TasksOptions } from './tasks.ts'
export type { Task, TaskStatus } from '../../core/state/tasks.ts'
