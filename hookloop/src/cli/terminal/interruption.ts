import type { Writable } from 'node:stream'
import { interruptionExitCode, type Interruption } from '../exit-codes.ts'

/** Under npm one Ctrl-C arrives twice: from the terminal and from npm. A user is slower than this. */
const SAME_PRESS_MS = 250

type Interruptible = {
  readonly signal: AbortSignal
  readonly by: () => Interruption | undefined
  readonly dispose: () => void
}

/**
 * Cancels on Ctrl-C, on SIGTERM, and when the output pipe is closed. A second signal exits the process at once, after
 * `onExit`.
 */
export function interruptible(
  output: Writable,
  onInterrupt: (by: Interruption) => void,
  onExit: () => void = () => undefined,
): Interruptible {
  const controller = new AbortController()
  let first: { readonly by: Interruption; readonly at: number } | undefined
  const interrupt = (by: Interruption): void => {
    if (first !== undefined) {
      if (by === 'EPIPE' || performance.now() - first.at <= SAME_PRESS_MS) return
      onExit()
      process.exit(interruptionExitCode(by))
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
