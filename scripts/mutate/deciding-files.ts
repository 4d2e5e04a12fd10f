import { globSync } from 'node:fs'

/** The files in which a mistake lets something happen that was forbidden, or loses something. */
const patterns = [
  'core/hooks/run-hooks.ts',
  'core/context/fire-trigger.ts',
  'core/loop/loop.ts',
  'core/tools/judge-call.ts',
  'core/tools/execute-call.ts',
  'core/loop/run-calls.ts',
  'core/state/continuation.ts',
  'capabilities/guards.ts',
  'core/effects/journal.ts',
  'core/effects/log.ts',
  'sessions/log/session-journal.ts',
  'sessions/session/session.ts',
  'sessions/limits/slots.ts',
  'sessions/limits/budget.ts',
  'sessions/limits/rate-limit.ts',
  'sessions/limits/run-limit.ts',
  'sessions/limits/call-limit.ts',
  'workers/turn.ts',
  'hook-files/claude/load/trusted-groups.ts',
  'hook-files/trust/trust-store.ts',
  'hook-files/claude/answer/*.ts',
]

/** Throws if one of them does not exist any more. */
export function decidingFiles(): readonly string[] {
  return patterns.flatMap((pattern) => {
    const found = globSync(`hookloop/src/${pattern}`).filter((file) => !/\.(test|fixture|types)\.ts$/.test(file))
    if (found.length === 0)
      throw new Error(`There is no hookloop/src/${pattern}. Change scripts/mutate/deciding-files.ts.`)
    return found.toSorted()
  })
}
