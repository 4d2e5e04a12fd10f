import type { ProcessTree } from './process-tree.ts'

const running = new Set<ProcessTree>()
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Kills a process tree when this process exits or is ended by a signal. Call `listenForExit` before the tree is started.
 * Returns a function to call when the tree has ended.
 */
export function killOnExit(tree: ProcessTree): () => void {
  listenForExit()
  running.add(tree)
  return () => {
    if (running.delete(tree)) removeListenersSoon()
  }
}

/**
 * Adds the listeners. With them, a signal that arrives while a tree is being started is handled after `killOnExit`; without
 * them it would end this process at once and leave the tree behind. They are removed soon after the last tree has ended.
 */
export function listenForExit(): void {
  if (!isListening) addListeners()
  removeListenersSoon()
}

function removeListenersSoon(): void {
  clearTimeout(removing)
  removing = setTimeout(() => running.size === 0 && removeListeners(), REMOVE_AFTER_MS).unref()
}

/** Another tree often follows at once, and adding and removing the listeners takes a tenth of the time of starting it. */
const REMOVE_AFTER_MS = 500
let removing: NodeJS.Timeout | undefined
let isListening = false

function killAll(): void {
  for (const tree of running) tree.killNow()
}

/**
 * Without other listeners a signal ends this process, and still must: it is sent again after the trees were killed. If the
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
  isListening = true
  process.on('exit', killAll)
  const { isMainThread } = process.getBuiltinModule('node:worker_threads') // loaded here, because few programs get here
  if (isMainThread) for (const signal of signals) process.on(signal, onSignal)
}

function removeListeners(): void {
  isListening = false
  clearTimeout(removing)
  process.off('exit', killAll)
  for (const signal of signals) process.off(signal, onSignal)
}
