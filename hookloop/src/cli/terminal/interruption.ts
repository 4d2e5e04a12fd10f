import type { Writable } from 'node:stream'
import { exitCodeOfInterruption, type Interruption } from '../exit-codes.ts'

/** Under npm one Ctrl-C arrives twice: from the terminal, and handed on by npm. A person is slower than this. */
const SAME_PRESS_MS = 250

export type Interruptible = {
  readonly signal: AbortSignal
  /** What interrupted it, if anything did. */
  readonly by: () => Interruption | undefined
  readonly dispose: () => void
}

/**
 * Cancels with Ctrl-C, with SIGTERM, and when nobody reads the output any more. A second signal does not wait for
 * anything.
 */
export function interruptible(output: Writable, onInterrupt: (by: Interruption) => void): Interruptible {
  const controller = new AbortController()
  let first: { readonly by: Interruption; readonly at: number } | undefined
  const interrupt = (by: Interruption): void => {
    if (first !== undefined) {
      if (by !== 'EPIPE' && performance.now() - first.at > SAME_PRESS_MS) process.exit(exitCodeOfInterruption(by))
      return
    }
    first = { by, at: performance.now() }
    onInterrupt(by)
    controller.abort()
  }
  const onSignal = (name: NodeJS.Signals): void => interrupt(name as 'SIGINT' | 'SIGTERM')
  const onError = (): void => interrupt('EPIPE')
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal)
  output.on('error', onError)
  return {
    signal: controller.signal,
    by: () => first?.by,
    dispose: () => {
      process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
      output.off('error', onError)
    },
  }
}
