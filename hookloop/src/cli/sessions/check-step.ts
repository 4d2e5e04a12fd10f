import { listPoints } from '../../sessions/session/fork-session.ts'
import type { CliContext } from '../cli-context.ts'
import { shellQuote } from '../terminal/shell-quote.ts'
import { UsageError } from '../usage-error.ts'
import type { OpenStore } from './open-store.ts'

/** Throws if a session has no step with the number of `--at`. */
export async function checkStep(
  { store, options }: OpenStore,
  { session, at }: { readonly session: string; readonly at: number | undefined },
  { command }: CliContext,
): Promise<void> {
  if (at === undefined || (await listPoints(store, session)).some(({ seq }) => seq === at)) return
  throw new UsageError(
    `--at ${at}: ${session} has no such step. List its steps with: ${command} steps ${shellQuote(session)}${options}`,
  )
}
