import { resolve } from 'node:path'
import { isJsonObject, type JsonObject } from '../../state/json.ts'
import { AgentError } from '../../errors.ts'
import { action, type Action } from '../../hooks/action.ts'
import { isClaudeEvent, triggersOfEvent } from './events/claude-events.ts'
import { readHandler, type HookGroup, type HookSource } from './load/handlers.ts'
import { payloadsFor } from './events/payload.ts'
import { HookTable, runEvent } from './run/run-event.ts'
import { toHookOutcome } from './answer/to-hook-outcome.ts'
import { Transcripts } from './events/transcripts.ts'

/**
 * One handler that was written for Claude Code, as a hook of its own: it is told and answers what its specification says,
 * and has a place, a name and a failure policy as every other hook has. If it fails, the hook has failed.
 */
export function claudeAction(
  options: JsonObject,
  { cwd, source }: { readonly cwd: string; readonly source: HookSource },
): Action {
  const { event, matcher, pluginRoot, ...given } = options
  if (typeof event !== 'string' || !isClaudeEvent(event))
    throw new Error('"event" must be one of the events of Claude Code')
  if (matcher !== undefined && typeof matcher !== 'string') throw new Error('"matcher" must be a text')
  if (pluginRoot !== undefined && typeof pluginRoot !== 'string') throw new Error('"pluginRoot" must be a folder')
  if (triggersOfEvent(event).length === 0) throw new Error(`${event} never fires for a hook of its own`)
  const handler = readHandler(
    isJsonObject(given) && given['type'] === undefined ? { type: 'command', ...given } : given,
    event,
  )
  if (typeof handler === 'string') throw new Error(handler)
  const from: HookSource =
    pluginRoot === undefined ? source : { ...source, kind: 'plugin', root: resolve(cwd, pluginRoot) }
  const group: HookGroup = { event, matcher, handlers: [handler], source: from }
  const table = new HookTable([group])
  const around = { cwd, transcripts: new Transcripts(cwd) }
  const label = `claude:${handler.type === 'command' ? handler.command : handler.type}`
  return action({
    kind: 'claude',
    label,
    async perform(ctx, { signal, mode }) {
      const payload = payloadsFor(ctx, around).find((each) => each.event === event)
      if (payload === undefined) return {}
      const world = { projectDir: cwd, cwd, env: process.env, passEnv: [], signal }
      const { merged, ran } = await runEvent(table, payload, { world })
      const failed = ran.find(({ answer }) => answer.failed !== undefined)
      if (failed !== undefined)
        throw new AgentError('HOOK_FAILED', `"${label}": ${failed.answer.problem ?? 'it failed'}.`)
      return toHookOutcome(ctx, payload, { merged, mode })
    },
  })
}
