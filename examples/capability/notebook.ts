import { checkOptions, guard, hook, tool, type AgentState, type Capability } from 'hookloop/plugin'

/** Options of `notebook`. */
export type NotebookOptions = {
  /** The number of notes. Default 20. */
  readonly maxNotes?: number
}

const KEY = 'acme.notebook'

/** Lets the model take notes, which stay for the whole conversation. */
export function notebook(options: NotebookOptions = {}): Capability {
  checkOptions('notebook', options, ['maxNotes'])
  const { maxNotes = 20 } = options
  const take = tool({
    name: 'take_note',
    description: `Stores a note for later. At most ${maxNotes} notes.`,
    input: {
      type: 'object',
      properties: { text: { type: 'string', maxLength: 500 } },
      required: ['text'],
    },
    execute: () => 'Noted.',
  })
  const limit = guard(
    'beforeToolUse',
    (ctx) => {
      if (getNotes(ctx.state).length < maxNotes) return ctx
      return ctx.block(`The notebook is full: ${maxNotes} notes.`)
    },
    { name: 'notebook.limit', tool: take },
  )
  const keep = hook(
    'afterToolUse',
    (ctx) => {
      if (ctx.toolExecution.status !== 'ok') return ctx
      const notes = [...getNotes(ctx.state), ctx.toolCall.args['text']]
      return ctx.withState((state) => state.withMetadata(KEY, notes))
    },
    { name: 'notebook.keep', tool: take, bookkeeping: true },
  )
  return {
    name: 'notebook',
    tools: [take],
    hooks: [limit, keep],
    notes: [`Notebook: up to ${maxNotes} notes.`],
  }
}

/** The notes in a state. Stored data may come from anywhere, so what is not a note is left out. */
export function getNotes(state: AgentState): readonly string[] {
  const stored = state.metadata[KEY]
  return Array.isArray(stored) ? stored.filter((note) => typeof note === 'string') : []
}
