import type { TimedLedgerEntry } from '../../core/state/ledger.ts'
import { noTokens } from '../../core/state/usage.ts'
import type { Column, EmbeddedRun, Question, Row, RowDetail, RunInfo, Span } from '../run.types.ts'

// A run with every kind of decision.

export const START = Date.UTC(2026, 10, 16, 8, 30)

const names: readonly (readonly [hook: string, mode: Column['mode'], group: string, more?: Partial<Column>])[] = [
  ['validate-input', 'guard', 'onUserInput'],
  ['maxSteps', 'guard', 'beforeStep'],
  ['maxTokens', 'guard', 'beforeInference'],
  ['maxCost', 'guard', 'beforeInference'],
  ['normalize-paths', 'transform', 'beforeToolUse', { definedAt: 'agent.ts:31' }],
  ['no-ls', 'guard', 'beforeToolUse', { shadow: true, definedAt: 'shadow.ts:4' }],
  ['no-push', 'guard', 'beforeToolUse', { definedAt: 'agent.ts:12' }],
  ['ask-rm', 'guard', 'beforeToolUse', { definedAt: '.hookloop/hooks.json:8' }],
  ['workspace-only', 'guard', 'beforeToolUse', { definedAt: 'agent.ts:40' }],
  ['redact-secrets', 'transform', 'afterToolUse'],
  ['audit-log', 'observe', 'afterToolUse'],
  ['completion', 'transform', 'afterStep'],
  ['tests-must-pass', 'guard', 'onStop', { definedAt: 'agent.ts:58' }],
  ['tasks-bookkeeping', 'transform', 'afterStep', { bookkeeping: true }],
]
const idOf = (hook: string): number => names.findIndex(([name]) => name === hook)

type Said = Partial<TimedLedgerEntry> & { readonly hook: string; readonly cell: string }
type Line = Omit<Row, 'index' | 'cells' | 'decision' | 'step'> & {
  readonly step?: number
  readonly said?: readonly Said[]
  readonly more?: Partial<RowDetail>
}

export const question: Question = {
  session: 'clean-up-7f3a',
  title: 'Clean up the folder, then publish.',
  agent: 'release-bot',
  id: 'ask-1#7883bbd3bd35',
  hash: '7883bbd3bd35a1b2c3d4e5f60718293a',
  by: 'ask-rm',
  toolCall: { id: 'call-5', name: 'bash', args: { command: 'rm -r build/ old-notes.md', cwd: 'packages/site' } },
  message: 'Deletes files that are not in git.',
  asks: [{ by: 'ask-rm', message: 'Deletes files that are not in git.' }],
  askedAt: START + 40_000,
}
const lines: readonly Line[] = [
  {
    kind: 'input',
    text: 'Clean up the folder, run the tests, then publish.',
    more: { text: 'Clean up the folder, run the tests, then publish.' },
  },
  {
    kind: 'model',
    step: 0,
    name: 'claude-sonnet-5-5',
    text: 'Let me look at what is there first.',
    ms: 1_812,
    forkAt: 4,
  },
  {
    kind: 'call',
    step: 0,
    name: 'bash',
    text: 'ls -la',
    status: 'ok',
    ms: 12,
    said: [{ hook: 'no-ls', cell: 'x', decision: 'block', message: 'Use the files tool to list folders.' }],
    more: {
      args: { command: 'ls -la' },
      output:
        'total 48\ndrwxr-xr-x  7 dev dev 4096 build\n-rw-r--r--  1 dev dev  812 old-notes.md\n-rw-r--r--  1 dev dev 2210 package.json',
    },
  },
  {
    kind: 'call',
    step: 0,
    name: 'read_file',
    text: './src/../config.json',
    status: 'ok',
    ms: 4,
    said: [
      {
        hook: 'normalize-paths',
        cell: '~',
        changes: [{ path: 'toolCall.args.path', before: './src/../config.json', after: 'config.json' }],
      },
      {
        hook: 'redact-secrets',
        cell: '~',
        changes: [
          {
            path: 'toolExecution.output',
            after: '{\n  "registry": "https://npm.example",\n  "token": "[redacted]"\n}',
          },
        ],
      },
    ],
    more: {
      args: { path: 'config.json' },
      originalArgs: { path: './src/../config.json' },
      output: '{\n  "registry": "https://npm.example",\n  "token": "[redacted]"\n}',
    },
  },
  {
    kind: 'model',
    step: 1,
    name: 'claude-sonnet-5-5',
    text: 'The build is ready. I publish it.',
    ms: 2_204,
    forkAt: 11,
  },
  {
    kind: 'call',
    step: 1,
    name: 'bash',
    text: 'git push origin main',
    status: 'blocked',
    ms: 0,
    said: [
      { hook: 'no-push', cell: 'x', decision: 'block', message: 'Agents never push. Open a pull request instead.' },
    ],
    more: {
      args: { command: 'git push origin main' },
      output: 'Blocked by no-push: Agents never push. Open a pull request instead.',
    },
  },
  {
    kind: 'model',
    step: 2,
    name: 'claude-sonnet-5-5',
    text: 'I ask a researcher how releases are made here.',
    ms: 1_402,
    forkAt: 17,
  },
  {
    kind: 'call',
    step: 2,
    name: 'researcher',
    text: 'How are releases published in this repository?',
    status: 'ok',
    ms: 5_310,
    more: {
      args: { task: 'How are releases published in this repository?' },
      output: 'By a workflow on tags. See .github/workflows/release.yml.',
    },
  },
  {
    kind: 'model',
    step: 0,
    name: 'claude-haiku-5',
    text: 'I search the workflows.',
    ms: 902,
    path: ['researcher'],
  },
  {
    kind: 'call',
    step: 0,
    name: 'grep',
    text: 'npm publish',
    status: 'ok',
    ms: 31,
    path: ['researcher'],
  },
  {
    kind: 'model',
    step: 3,
    name: 'claude-sonnet-5-5',
    text: 'First I run the tests.',
    ms: 1_190,
    forkAt: 23,
  },
  {
    kind: 'call',
    step: 3,
    name: 'bash',
    text: 'npm test',
    status: 'failed',
    ms: 8_420,
    said: [
      {
        hook: 'audit-log',
        cell: '!',
        error: 'ENOSPC: no space left on device, write',
        warnings: [{ code: 'ACTION_WARNING', message: 'The entry was not written.' }],
      },
    ],
    more: { args: { command: 'npm test' }, output: '3 passed, 1 failed\n  ✖ publish.test.ts: the tag exists' },
  },
  {
    kind: 'model',
    step: 4,
    name: 'claude-sonnet-5-5',
    text: 'The tests fail because of an old tag. I fixed the test.',
    ms: 3_114,
    forkAt: 29,
  },
  {
    kind: 'votes',
    step: 4,
    text: 'continues (tests-must-pass)',
    said: [
      { hook: 'completion', cell: 's', decision: 'allowStop', message: 'The model called no more tools.' },
      {
        hook: 'tests-must-pass',
        cell: 'c',
        decision: 'requestContinuation',
        message: 'The last test run failed. Run the tests again.',
      },
    ],
    more: {
      votes: {
        shouldContinue: true,
        resolvedBy: 'tests-must-pass',
        how: '"tests-must-pass" decided by requestContinuation: forbidContinuation beats requestContinuation beats allowStop beats allowContinuation.',
        evaluations: [
          {
            decision: 'allowStop',
            reason: 'completed',
            message: 'The model called no more tools.',
            source: 'completion',
          },
          {
            decision: 'requestContinuation',
            reason: 'stopRequested',
            message: 'The last test run failed. Run the tests again.',
            source: 'tests-must-pass',
          },
        ],
      },
    },
  },
  { kind: 'model', step: 5, name: 'claude-sonnet-5-5', text: 'Now the clean-up.', ms: 988, forkAt: 34 },
  {
    kind: 'call',
    step: 5,
    name: 'bash',
    text: 'rm -r build/ old-notes.md',
    status: 'asked',
    question: question.id,
    said: [{ hook: 'ask-rm', cell: '?', decision: 'ask', message: 'Deletes files that are not in git.' }],
    more: { args: question.toolCall.args, question },
  },
]

const columns: readonly Column[] = names.map(([hook, mode, group, more], id) => {
  const saying = lines.filter(({ said = [] }) => said.some((each) => each.hook === hook)).length
  return {
    id,
    hook,
    mode,
    group,
    shadow: false,
    bookkeeping: false,
    decided: saying,
    ...more,
  }
})

function toRow(line: Line, index: number): Row {
  const { said = [], more: _, ...fields } = line
  const cells = names.map(([hook]) => said.find((each) => each.hook === hook)?.cell ?? ' ')
  const decision = said.some(({ hook }) => names[idOf(hook)]![3]?.shadow !== true)
  return { step: 0, ...fields, index, cells: cells.join('').trimEnd(), decision, at: START + index * 4_000 }
}

function toDetail(line: Line, row: Row): RowDetail {
  const entry = (hook: string, more: Partial<TimedLedgerEntry>): TimedLedgerEntry => {
    const column = columns[idOf(hook)]!
    return {
      hook,
      step: row.step,
      mode: column.mode,
      trigger: column.group,
      durationMs: 0.4,
      ...(column.shadow && { shadow: true }),
      ...(column.definedAt !== undefined && { definedAt: column.definedAt }),
      ...more,
    }
  }
  const { said = [] } = line
  const usage = { ...noTokens, inputTokens: 4_120, outputTokens: 160, cachedInputTokens: 3_000, costUsd: 0.0081 }
  return {
    row,
    text: row.kind === 'call' || row.kind === 'votes' ? '' : row.text,
    errors: [],
    ...(row.kind === 'model' && { usage }),
    entries: said.map((each) => entry(each.hook, each)),
    ...line.more,
  }
}

const runInfo: RunInfo = {
  session: question.session,
  agent: 'release-bot',
  cwd: '~/code/site',
  index: 1,
  runs: 2,
  id: 'run-2',
  input: 'Clean up the folder, run the tests, then publish.',
  status: 'suspended',
  live: false,
  startedAt: START,
  endedAt: START + 64_000,
  usage: {
    inputTokens: 24_720,
    outputTokens: 960,
    cachedInputTokens: 18_000,
    cacheWriteTokens: 0,
    reasoningTokens: 120,
    costUsd: 0.0486,
    steps: 6,
    toolCalls: 6,
  },
  decided: {
    by: 'ask-rm',
    definedAt: '.hookloop/hooks.json:8',
    message: 'Deletes files that are not in git.',
  },
  wayOn: 'Answer the question, then resume.',
  columns,
  rows: lines.length,
  decisions: 7,
  gauges: [
    { limit: 'maxSteps', used: 6, max: 20 },
    { limit: 'maxTokens', used: 27_680, max: 32_768 },
    { limit: 'maxCost', used: 0.0486, max: 0.1 },
    { limit: 'maxTimeMs', used: 27_500, max: 300_000 },
  ],
  pending: [question],
  whatIf: true,
}
const rows = lines.map(toRow)

let clock = 0
const spans: Span[] = rows.flatMap((row): readonly Span[] => {
  if (row.ms === undefined || row.ms === 0) return []
  const startMs = clock
  clock += row.kind === 'call' && row.name === 'researcher' ? 0 : row.ms
  return [
    {
      kind: row.kind === 'model' ? 'model' : 'tool',
      name: row.name ?? '',
      step: row.step,
      startMs,
      ms: row.ms,
      row: row.index,
    },
  ]
})

export const exampleRun: EmbeddedRun = {
  explanation: {
    text: 'The run waits for 1 answer.\n  spent        6 steps, 6 tool calls, 25,680 tokens\n  blocked      step 2, bash, by no-push (agent.ts:12): Agents never push.\n  asked        step 6, bash, by ask-rm (.hookloop/hooks.json:8): Deletes files that are not in git.',
    warnings: ['audit-log failed in step 4: ENOSPC: no space left on device, write'],
  },
  run: runInfo,
  rows,
  details: lines.map((line, i) => toDetail(line, rows[i]!)),
  time: {
    startedAt: START,
    endedAt: START + clock,
    waitedMs: 0,
    totals: { modelMs: 11_612, toolsMs: 13_777, hooksMs: 412 },
    spans,
    models: [
      { ...noTokens, model: 'claude-sonnet-5-5', calls: 6, inputTokens: 22_120, outputTokens: 820, costUsd: 0.0441 },
      { ...noTokens, model: 'claude-haiku-5', calls: 1, inputTokens: 2_600, outputTokens: 140, costUsd: 0.0045 },
    ],
  },
}
