/** A change that no test can or should notice: the file below `hookloop/src`, the line of code, the change as it is printed. */
type Equivalent = { readonly file: string; readonly code: string; readonly change: string; readonly why: string }

export const equivalent: readonly Equivalent[] = [
  {
    file: 'hook-files/claude/answer/merge-answers.ts',
    code: 'const rank = { deny: 4, defer: 3, ask: 2, allow: 1 } as const',
    change: '4 → 5',
    why: 'Only the order matters.',
  },
  {
    file: 'hook-files/claude/answer/limit-to-event.ts',
    code: "return Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value",
    change: "'array' → 'array-changed'",
    why: 'Kinds are only compared with each other.',
  },
  ...[
    ['maxSteps', 'steps: maxSteps'],
    ['maxTokens', 'tokens: maxTokens'],
    ['maxCost', 'costUsd: maxCost'],
    ['maxToolCalls', 'toolCalls: maxToolCalls'],
    ['maxTimeMs', "time: { ms: maxTimeMs, by: 'guards.maxTimeMs' }"],
  ].map(([name, set]) => ({
    file: 'capabilities/guards.ts',
    code: `...(isSet('${name}', ${name}) && { ${set} }),`,
    change: `'${name}' → '${name}-changed'`,
    why: 'The name is only in the error about an invalid limit, and guards() has checked every limit before.',
  })),
  {
    file: 'hook-files/trust/trust-store.ts',
    code: 'this.#write(Object.fromEntries([...all].toSorted(([a], [b]) => (a < b ? -1 : 1))))',
    change: '1 → 2',
    why: 'A sort uses only the sign.',
  },
  {
    file: 'sessions/limits/rate-limit.ts',
    code: 'let [waitMs, failures, isBlocked] = [0, 0, false]',
    change: '0 → 1',
    why: 'A store always calls the change, which sets them.',
  },
  {
    file: 'sessions/limits/rate-limit.ts',
    code: 'let [waitMs, failures, isBlocked] = [0, 0, false]',
    change: 'false → true',
    why: 'A store always calls the change, which sets them.',
  },
  {
    file: 'sessions/limits/rate-limit.ts',
    code: "const error = toAgentError(thrown, 'MODEL_FAILED')",
    change: "'MODEL_FAILED' → 'MODEL_FAILED-changed'",
    why: 'The code is only compared with MODEL_RATE_LIMITED.',
  },
  {
    file: 'sessions/limits/run-limit.ts',
    code: 'timeoutMs: maxWaitMs + 60_000,',
    change: '60_000 → 60001',
    why: 'The guard ends by itself when it has waited. The limit only has to be longer.',
  },
  {
    file: 'hook-files/trust/trust-store.ts',
    code: "writeFileSync(temporary, `${JSON.stringify({ version: 1, files }, undefined, 2)}\\n`, { mode: 0o600, flag: 'wx' })",
    change: '0o600 → 385',
    why: 'The next line sets the mode. Until then others may execute the file, but not read it.',
  },
  {
    file: 'hook-files/trust/trust-store.ts',
    code: "writeFileSync(temporary, `${JSON.stringify({ version: 1, files }, undefined, 2)}\\n`, { mode: 0o600, flag: 'wx' })",
    change: '2 → 3',
    why: 'It is the indentation of the file.',
  },
  {
    file: 'core/hooks/run-hooks.ts',
    code: 'invocation.mark = ended // the next hook starts here: reading the clock costs as much as calling a hook',
    change: 'invocation.mark = ended → void 0',
    why: 'The next hook reads the clock itself, which costs time.',
  },
  {
    file: 'sessions/log/session-journal.ts',
    code: 'this.#writing = undefined',
    change: 'this.#writing = undefined → void 0',
    why: 'After a failure nothing is written. Without it, a timer looks again until the session is released.',
  },
  {
    file: 'core/loop/loop.ts',
    code: "const reason = outcome.stopReason ?? 'completed'",
    change: "'completed' → 'completed-changed'",
    why: 'An outcome that stops a run always has a reason. It could only be missing in a saved run that was edited.',
  },
  {
    file: 'core/loop/loop.ts',
    code: "by: outcome.resolvedBy ?? 'hookloop',",
    change: "'hookloop' → 'hookloop-changed'",
    why: 'An outcome that stops a run always says who decided. It could only be missing in a saved run that was edited.',
  },
  {
    file: 'core/tools/execute-call.ts',
    code: 'abort: () => 0,',
    change: '0 → 1',
    why: 'It is only called when a limit of its own is over, and this one has none.',
  },
  {
    file: 'hook-files/claude/answer/limit-to-event.ts',
    code: 'let count = 0',
    change: '0 → 1',
    why: 'Names of files only have to differ.',
  },
  {
    file: 'hook-files/claude/answer/limit-to-event.ts',
    code: 'if (!isJsonObject(before) || !isJsonObject(after)) return true',
    change: '!isJsonObject(before) || !isJsonObject(after) → !isJsonObject(before) && !isJsonObject(after)',
    why: 'Both are objects, or none is: the line before it has compared their kinds.',
  },
  {
    file: 'hook-files/claude/answer/terminal-sequence.ts',
    code: "const [head] = text.split(';', 1)",
    change: '1 → 2',
    why: 'Only the first part is used.',
  },
  {
    file: 'hook-files/trust/trust-store.ts',
    code: 'this.#write(Object.fromEntries([...all].toSorted(([a], [b]) => (a < b ? -1 : 1))))',
    change: 'a < b → a <= b',
    why: 'No two paths are the same.',
  },
  {
    file: 'hook-files/claude/answer/limit-to-event.ts',
    code: "folder ??= mkdtempSync(join(tmpdir(), 'hookloop-hook-output-'))",
    change: "'hookloop-hook-output-' → 'hookloop-hook-output--changed'",
    why: 'The path of the file is in the text, and no program looks for it by its name.',
  },
  {
    file: 'hook-files/claude/answer/to-hook-outcome.ts',
    code: 'if (!isJsonObject(args)) return {}',
    change: 'return {} → ;',
    why: 'Other values have no prompt, and null cannot be passed: it is replaced by the arguments of the call.',
  },
]
