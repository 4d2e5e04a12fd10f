import type { JsonObject } from '../../values/json.ts'
import type { ClaudeEvent } from './events/claude-events.ts'

/** A published hook: its file, its command, and its expected decisions. */
export type PublicScript = {
  readonly title: string
  readonly event: ClaudeEvent
  readonly file: string
  readonly mode?: number
  readonly source: string
  /** Its command; `FILE` is its path. */
  readonly command: string
  readonly cases: readonly (readonly [title: string, input: JsonObject, gives: JsonObject])[]
}

export const none = { decision: 'none' }
export const bash = (command: string): JsonObject => ({ tool_name: 'Bash', tool_input: { command, description: 'd' } })
export const file = (tool_name: string, file_path: string): JsonObject => ({ tool_name, tool_input: { file_path } })
