/** A change that no test can or should notice: the file below `hookloop/src`, the line of code, the change as it is printed. */
type Equivalent = { readonly file: string; readonly code: string; readonly change: string; readonly why: string }

export const equivalent: readonly Equivalent[] = [
  {
    file: 'agent/tools/run-calls.ts',
    code: 'const undivided: BudgetShare = { index: 0, of: 1 }',
    change: '0 → 1',
    why: 'A budget for one is not divided, so the index is not used.',
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
  {
    file: 'hook-files/claude/answer/limit-to-event.ts',
    code: "return Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value",
    change: "'array' → 'array-changed'",
    why: 'Kinds are only compared with each other.',
  },
  {
    file: 'hook-files/trust/trust-store.ts',
    code: 'else Atomics.wait(pause, 0, 0, 10)',
    change: 'Atomics.wait(pause, 0, 0, 10) → void 0',
    why: 'It waits for the lock without sleeping, which only takes more of the processor.',
  },
  {
    file: 'agent/tools/authorize-call.ts',
    code: 'if (candidate.plan.transforms.length === 0) return parseAndDecide(run, candidate, invocation)',
    change: 'return parseAndDecide(run, candidate, invocation) → ;',
    why: 'The other path does the same without transforms. This one allocates less.',
  },
  {
    file: 'agent/loop/loop.ts',
    code: 'if (messages.at(step.resultsAt - 1) === step.asked) return step.resultsAt - 1',
    change: 'return step.resultsAt - 1 → ;',
    why: 'The search below it finds the same message. This is faster.',
  },
  {
    file: 'hook-files/trust/trust-store.ts',
    code: 'else Atomics.wait(pause, 0, 0, 10)',
    change: '0 → 1',
    why: 'Another expected value means that it does not sleep, which only takes more of the processor. (Another index throws, and a test fails.)',
  },
  {
    file: 'hook-files/claude/answer/to-hook-outcome.ts',
    code: "{ merged, mode = 'transform', args }: ToOutcome,",
    change: "'transform' → 'transform-changed'",
    why: "The mode is only compared with 'guard'.",
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
    file: 'agent/loop/loop.ts',
    code: 'if (messages.at(step.resultsAt - 1) === step.asked) return step.resultsAt - 1',
    change: '1 → 2',
    why: 'In the condition, the search below it finds the same message, only slower. (In the result, a test fails.)',
  },
  {
    file: 'agent/tools/execute-call.ts',
    code: "const isTimed = effects.emit !== undefined || parts.stack.plan('afterToolUse', call.name).observers.length > 0",
    change:
      "parts.stack.plan('afterToolUse', call.name).observers.length > 0 → parts.stack.plan('afterToolUse', call.name).observers.length >= 0",
    why: 'Only events and observers show how long a tool ran. Without them the time is measured for nothing.',
  },
  {
    file: 'agent/tools/authorize-call.ts',
    code: "return run.effects.withTimeout(parsed, parseLimit(run, call, 'fits')).then(isValid, () => false)",
    change: "'fits' → 'fits-changed'",
    why: 'It is a part of a key, which only has to differ from other keys.',
  },
  {
    file: 'sessions/log/session-journal.ts',
    code: 'this.#tailChars = 0',
    change: '0 → 1',
    why: 'It decides when a snapshot is taken, which is a matter of cost.',
  },
  {
    file: 'sessions/log/session-journal.ts',
    code: 'if (this.#events.length === 0) return',
    change: 'return → ;',
    why: 'Without events, lines that wait are written a moment sooner, in the same order, or nothing is written.',
  },
  {
    file: 'hook-files/trust/trust-store.ts',
    code: 'this.#write(Object.fromEntries([...all].toSorted(([a], [b]) => (a < b ? -1 : 1))))',
    change: '1 → 2',
    why: 'A sort uses only the sign.',
  },
  {
    file: 'sessions/limits/slots.ts',
    code: 'let used = 0',
    change: '0 → 1',
    why: 'A store always calls the change, which sets it.',
  },
  {
    file: 'sessions/limits/slots.ts',
    code: 'if (line.isEmpty) this.#lines.delete(name)',
    change: 'this.#lines.delete(name) → void 0',
    why: 'An empty line works like a new one. It frees memory.',
  },
  {
    file: 'sessions/limits/slots.ts',
    code: '#length = 0',
    change: '0 → 1',
    why: 'The line is never empty then, so it is not deleted, which only takes memory.',
  },
  {
    file: 'capabilities/bash/policy/judge-command.ts',
    code: 'return { index: words.length - 1, why: `the harmless words of ${name} are not known, so a rule must match all words` }',
    change: '1 → 2',
    why: 'It is where the search for a rule to suggest starts. A rule with fewer words does not cover the command.',
  },
  ...['requestsAt', 'tokensAt', 'blockedUntil'].map((time) => ({
    file: 'sessions/limits/rate-limit.ts',
    code: `${time}: 0,`,
    change: '0 → 1',
    why: 'It is a time long ago, in milliseconds since 1970.',
  })),
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
    file: 'agent/tools/interrupted-call.ts',
    code: 'return resolve(run, at, executionIn(await executeCall(run, at)))',
    change: 'await executeCall(run, at) → (executeCall(run, at))',
    why: 'Only a replayed execution can be interrupted, and that is not a promise. Another one is returned as it is.',
  },
  {
    file: 'agent/tools/interrupted-call.ts',
    code: 'const noEdits = answerProblem({ interruptions: 1 }, { allow: {} })!',
    change: '1 → 2',
    why: 'The sentence is the same for any number.',
  },
  {
    file: 'sessions/session/approvals.ts',
    code: 'if (key === undefined || call?.approval === undefined) {',
    change: 'key === undefined || call?.approval === undefined → key === undefined && call?.approval === undefined',
    why: 'Both are undefined, or none is: the call was found by its approval.',
  },
]
