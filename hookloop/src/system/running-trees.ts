import { isMainThread } from 'node:worker_threads'
import type { ProcessTree } from './process-tree.ts'

const running = new Set<ProcessTree>()
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Makes sure that a tree does not outlive this process: while one runs, the end of this process ends it. Returns what to
 * call when the tree is gone; soon after the last one nothing of this is left in the process.
 */
export function watchOver(tree: ProcessTree): () => void {
  clearTimeout(leaving)
  if (!isListening) listen()
  running.add(tree)
  return () => {
    if (!running.delete(tree) || running.size > 0) return
    leaving = setTimeout(ignore, LEAVE_AFTER_MS).unref()
  }
}

/** The next one often comes at once, and to begin and to stop listening takes a tenth of the time of starting it. */
const LEAVE_AFTER_MS = 500
let leaving: NodeJS.Timeout | undefined
let isListening = false

/** Ends every tree of this process at once. */
function endAll(): void {
  for (const tree of running) tree.endNow()
}

/**
 * With nobody else listening a signal ends this process, and still must: it is sent again once the trees are gone. Whoever
 * does listen decides what it means, for example that running work may finish.
 */
function onSignal(signal: NodeJS.Signals): void {
  if (othersListening(signal)) return
  endAll()
  running.clear()
  ignore()
  process.kill(process.pid, signal)
}

/** Marks the listeners of every copy of this module, and none of them waits for another. */
const ours = Symbol.for('hookloop.running-trees')
Object.assign(onSignal, { [ours]: true })

function othersListening(signal: NodeJS.Signals): boolean {
  const others = process.listeners(signal).filter((listener) => !(ours in listener))
  return others.length > politeListeners()
}

/** The package signal-exit, which many have loaded, also waits for others to decide. Two that wait would wait forever. */
function politeListeners(): number {
  const emitters = process as unknown as { readonly [name: string | symbol]: { readonly count?: unknown } | undefined }
  const counts = [emitters[Symbol.for('signal-exit emitter')]?.count, emitters['__signal_exit_emitter__']?.count]
  return counts.reduce((sum: number, count) => sum + (typeof count === 'number' ? count : 0), 0)
}

function listen(): void {
  isListening = true
  process.on('exit', endAll)
  if (isMainThread) for (const signal of signals) process.on(signal, onSignal)
}

function ignore(): void {
  isListening = false
  clearTimeout(leaving)
  process.off('exit', endAll)
  for (const signal of signals) process.off(signal, onSignal)
}
