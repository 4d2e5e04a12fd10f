/** A change that no test can or should notice: the file below `hookloop/src`, the line of code, the change as it is printed. */
type Equivalent = { readonly file: string; readonly code: string; readonly change: string; readonly why: string }

export const equivalent: readonly Equivalent[] = [
  {
    file: 'agent/tools/run-calls.ts',
    code: 'const undivided: BudgetShare = { index: 0, of: 1 }',
    change: '0 → 1',
    why: 'A budget that is divided by one has no remainder, so the index is not used.',
  },
  {
    file: 'effects/record-effects.ts',
    code: 'this.keys.clear()',
    change: 'this.keys.clear() → void 0',
    why: 'Keys contain the step, and a step starts with a checkpoint, so no key is repeated after one. It frees memory.',
  },
  {
    file: 'hook-files/claude/load/trusted-groups.ts',
    code: "if (handler.type !== 'command') return ''",
    change: "return '' → ;",
    why: 'Another handler has no command and no arguments: they are joined to an empty text.',
  },
  {
    file: 'hook-files/claude/answer/merge-answers.ts',
    code: 'const rank = { deny: 4, defer: 3, ask: 2, allow: 1 } as const',
    change: '4 → 5',
    why: 'Only the order matters.',
  },
  {
    file: 'sessions/log/session-journal.ts',
    code: 'const isCheap = state.messages.length % List.chunkLength < MAX_LEFT_OVER',
    change:
      'state.messages.length % List.chunkLength < MAX_LEFT_OVER → state.messages.length % List.chunkLength <= MAX_LEFT_OVER',
    why: 'It decides when a snapshot is taken, which is a matter of cost: a session reads the same with and without one.',
  },
  {
    file: 'sessions/log/session-journal.ts',
    code: 'const SNAPSHOT_CHARS = 98_304',
    change: '98_304 → 98305',
    why: 'It decides when a snapshot is taken, which is a matter of cost.',
  },
]
