import type { ProcessGroup } from './process-group.ts'

const running = new Set<ProcessGroup>()
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Kills a process group when this process exits or is ended by a signal. Call it before the group is started: without a
 * listener, a signal that arrives in between would leave the group behind. Returns a function to call when the group has ended.
 */
export function killOnExit(group: ProcessGroup): () => void {
  if (running.size === 0) addListeners()
  running.add(group)
  return () => {
    if (running.delete(group) && running.size === 0) removeListeners()
  }
}

function killAll(): void {
  for (const group of running) group.signal('SIGKILL')
}

/**
 * Without other listeners a signal ends this process, and still must: it is sent again after the groups were killed. If the
 * application listens too, it decides, for example to let running work finish.
 */
function onSignal(signal: NodeJS.Signals): void {
  if (hasOtherListeners(signal)) return
  killAll()
  running.clear()
  removeListeners()
  process.kill(process.pid, signal)
}

/** Marks the listeners of every copy of this module, so that they do not wait for each other. */
const ours = Symbol.for('hookloop.kill-on-exit')
Object.assign(onSignal, { [ours]: true })

function hasOtherListeners(signal: NodeJS.Signals): boolean {
  const others = process.listeners(signal).filter((listener) => !(ours in listener))
  return others.length > signalExitListeners()
}

/** The widely used package signal-exit also leaves the decision to other listeners: both would wait forever. */
function signalExitListeners(): number {
  const emitters = process as unknown as { readonly [name: string | symbol]: { readonly count?: unknown } | undefined }
  const counts = [emitters[Symbol.for('signal-exit emitter')]?.count, emitters['__signal_exit_emitter__']?.count]
  return counts.reduce((sum: number, count) => sum + (typeof count === 'number' ? count : 0), 0)
}

function addListeners(): void {
  process.on('exit', killAll)
  const { isMainThread } = process.getBuiltinModule('node:worker_threads') // loaded here, because few programs get here
  if (isMainThread) for (const signal of signals) process.on(signal, onSignal)
}

function removeListeners(): void {
  process.off('exit', killAll)
  for (const signal of signals) process.off(signal, onSignal)
}
