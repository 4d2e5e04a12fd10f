import { resolve } from 'node:path'
import type { JsonObject } from '../../values/json.ts'
import { AgentError } from '../../errors.ts'
import { action, type Action } from '../../core/hooks/action.ts'
import type { ClaudeEvent } from './events/claude-events.ts'
import { readHandler, shortName, type HookGroup, type HookSource } from './load/handlers.ts'
import { payloadsFor } from './events/payload.ts'
import { howItFailed } from './answer/handler-answer.ts'
import type { FailedAction } from '../../core/hooks/failure-text.ts'
import { HookTable, runEvent } from './run/run-event.ts'
import { toHookOutcome } from './answer/to-hook-outcome.ts'
import { Transcripts } from './events/transcripts.ts'

type ClaudeOptions = { readonly event: ClaudeEvent; readonly matcher?: string; readonly pluginRoot?: string }

/**
 * One handler that was written for Claude Code, as the action of a single hook: it reads the payload and prints the answer
 * of its specification. If the handler fails, the hook fails. The schema of hook files has checked the options.
 */
export function claudeAction(
  options: JsonObject,
  { cwd, source }: { readonly cwd: string; readonly source: HookSource },
): Action {
  const { event, matcher, pluginRoot, ...given } = options as JsonObject & ClaudeOptions
  const handler = readHandler({ type: 'command', ...given }, event)
  if (typeof handler === 'string') throw new Error(handler)
  const from: HookSource =
    pluginRoot === undefined ? source : { ...source, kind: 'plugin', root: resolve(cwd, pluginRoot) }
  const group: HookGroup = { event, matcher, handlers: [handler], source: from }
  const table = new HookTable([group])
  const around = { cwd, transcripts: new Transcripts(cwd) }
  const label = `claude:${shortName(handler)}`
  return action({
    kind: 'claude',
    label,
    fitting: true,
    limitsItself: true,
    async perform(ctx, { signal, mode }) {
      const payload = payloadsFor(ctx, around).find((each) => each.event === event)
      if (payload === undefined) return {}
      const context = { projectDir: cwd, cwd, env: process.env, passEnv: [], signal }
      const { merged, ran } = await runEvent(table, payload, { context })
      const failed = ran.find(({ answer }) => answer.failed !== undefined)
      if (failed !== undefined) {
        const value: FailedAction = { how: howItFailed(failed.answer) }
        throw new AgentError('HOOK_FAILED', `"${label}": ${failed.answer.problem ?? 'it failed'}.`, { value })
      }
      return toHookOutcome(ctx, payload, { merged, mode })
    },
  })
}
