export {
  getEventTasks,
  getTasks,
  renderTasks,
  tasks,
  withTasks,
  type Task,
  type TasksOptions,
  type TaskStatus,
} from './tasks.ts'
