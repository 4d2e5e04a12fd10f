import { hook, type AgentState, type Hook } from '../../plugin.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'

// The state of a run has a hash of each file it has read or written, by real path, so that an edit applies to the content that
// was read.

const KEY = 'hookloop.files'
const MAX_FILES = 1_000

/** The result of a tool: text for the model, and the file to remember, which a hook moves to the state. */
export type FileResult = { readonly text: string; readonly seen?: { readonly path: string; readonly hash: string } }

/** The hash of a file that the run has read or written. */
export function seenFile(state: AgentState, realPath: string): string | undefined {
  const all = state.metadata[KEY]
  const hash = isJsonObject(all) && Object.hasOwn(all, realPath) ? all[realPath] : undefined
  return typeof hash === 'string' ? hash : undefined
}

/** Moves the hash from the result to the state. It runs first, so that other hooks see the text that the model gets. */
export function rememberHook(tools: ReadonlySet<string>): Hook {
  return hook(
    'afterToolUse',
    (ctx) => {
      const { output } = ctx.toolExecution
      if (!isResult(output)) return ctx
      const shown = ctx.withOutput(output.text)
      const { path, hash } = output.seen ?? {}
      if (ctx.toolExecution.status !== 'ok' || typeof path !== 'string' || typeof hash !== 'string') return shown
      return shown.withState((state) => state.withMetadata(KEY, withFile(state.metadata[KEY], path, hash)))
    },
    { name: 'files.remember', bookkeeping: true, priority: 1_000, tool: new RegExp(`^(?:${[...tools].join('|')})$`) },
  )
}

function isResult(output: Json): output is { text: string; seen?: JsonObject } {
  if (!isJsonObject(output) || typeof output['text'] !== 'string') return false
  return output['seen'] === undefined || isJsonObject(output['seen'])
}

/** The latest file comes last, and the oldest are dropped. */
function withFile(before: Json | undefined, path: string, hash: string): JsonObject {
  const { [path]: _older, ...others } = isJsonObject(before) ? before : {}
  const recent = Object.entries(others).slice(-(MAX_FILES - 1))
  return Object.fromEntries([...recent, [path, hash]])
}
