import type { AgentState } from '../../state/agent-state.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { hook, type Hook } from '../../hooks/hook.ts'
import type { Fingerprint } from './reading.ts'

// What a run has seen of which file lives in its state, by real path: an edit is made to what was read, not to whatever
// is there by now.

const KEY = 'hookloop.files'
const MAX_REMEMBERED = 1_000

/** What a tool gives back: words for the model, and what is to be remembered, which a hook takes out again. */
export type FileResult = { readonly text: string; readonly seen?: JsonObject }

export function result(text: string, realPath?: string, file?: Fingerprint): FileResult {
  if (realPath === undefined || file === undefined) return { text }
  return { text, seen: { path: realPath, ...file } }
}

/** What a run remembers of a file, if it has read or written it. */
export function seenOf(state: AgentState, realPath: string): Fingerprint | undefined {
  const all = state.metadata[KEY]
  const entry = isJsonObject(all) && Object.hasOwn(all, realPath) ? all[realPath] : undefined
  return isJsonObject(entry) && typeof entry['hash'] === 'string' ? (entry as Fingerprint) : undefined
}

/**
 * Moves what is to be remembered from the result into the state, and leaves the words. It comes first, so that other
 * hooks see what the model will.
 */
export function remember(tools: ReadonlySet<string>): Hook {
  return hook(
    'afterToolUse',
    (ctx) => {
      const { output } = ctx.toolExecution
      if (!isResult(output)) return ctx
      const { seen } = output
      const shown = ctx.withOutput(output.text)
      const { path, ...file } = seen ?? {}
      if (ctx.toolExecution.status !== 'ok' || typeof path !== 'string') return shown
      return shown.withState((state) => state.withMetadata(KEY, withFile(state.metadata[KEY], path, file)))
    },
    { name: 'files.remember', priority: 1_000, tool: new RegExp(`^(?:${[...tools].join('|')})$`) },
  )
}

function isResult(output: Json): output is { text: string; seen?: JsonObject } {
  if (!isJsonObject(output) || typeof output['text'] !== 'string') return false
  return output['seen'] === undefined || isJsonObject(output['seen'])
}

/** The latest comes last, and those that were used longest ago are forgotten. */
function withFile(before: Json | undefined, path: string, file: JsonObject): JsonObject {
  const { [path]: _older, ...others } = isJsonObject(before) ? before : {}
  const kept = Object.entries(others).slice(-(MAX_REMEMBERED - 1))
  return Object.fromEntries([...kept, [path, file]])
}
