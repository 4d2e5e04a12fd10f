import type { TimedLedgerEntry } from '../../core/state/ledger.ts'
import { noTokens, noUsage } from '../../core/state/usage.ts'
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
const model = (step: number, text: string, ms: number, more: Partial<Line> = {}): Line => ({
  kind: 'model',
  step,
  name: 'claude-sonnet-5-5',
  text,
  ms,
  ...more,
})
const call = (place: readonly [step: number, name: string], text: string, more: Partial<Line>): Line => {
  const [step, name] = place
  return { kind: 'call', step, name, text, status: 'ok', ms: 12, ...more }
}
const bash = (step: number, command: string, more: Partial<Line>): Line =>
  call([step, 'bash'], command, { ...more, more: { args: { command }, ...more.more } })
const change = (path: string, after: string, before?: string): NonNullable<Said['changes']> => [
  { path, after, ...(before !== undefined && { before }) },
]

const INPUT = 'Clean up the folder, run the tests, then publish.'
const PUSH = 'Agents never push. Open a pull request instead.'
const DELETE = 'Deletes files that are not in git.'
const FAILED = 'The last test run failed. Run the tests again.'
const STOPS = 'The model called no more tools.'
const REDACTED = '{\n  "registry": "https://npm.example",\n  "token": "[redacted]"\n}'
const RELEASES = 'How are releases published in this repository?'

const lines: readonly Line[] = [
  { kind: 'input', text: INPUT, more: { text: INPUT } },
  model(0, 'Let me look at what is there first.', 1_812, { forkAt: 4 }),
  bash(0, 'ls -la', {
    said: [{ hook: 'no-ls', cell: 'x', decision: 'block', message: 'Use the files tool to list folders.' }],
    more: {
      output:
        'total 48\ndrwxr-xr-x  7 dev dev 4096 build\n-rw-r--r--  1 dev dev  812 old-notes.md\n-rw-r--r--  1 dev dev 2210 package.json',
    },
  }),
  call([0, 'read_file'], './src/../config.json', {
    ms: 4,
    said: [
      {
        hook: 'normalize-paths',
        cell: '~',
        changes: change('toolCall.args.path', 'config.json', './src/../config.json'),
      },
      { hook: 'redact-secrets', cell: '~', changes: change('toolExecution.output', REDACTED) },
    ],
    more: { args: { path: 'config.json' }, originalArgs: { path: './src/../config.json' }, output: REDACTED },
  }),
  model(1, 'The build is ready. I publish it.', 2_204, { forkAt: 11 }),
  bash(1, 'git push origin main', {
    status: 'blocked',
    ms: 0,
    said: [{ hook: 'no-push', cell: 'x', decision: 'block', message: PUSH }],
    more: { output: `Blocked by no-push: ${PUSH}` },
  }),
  model(2, 'I ask a researcher how releases are made here.', 1_402, { forkAt: 17 }),
  call([2, 'researcher'], RELEASES, {
    ms: 5_310,
    more: { args: { task: RELEASES }, output: 'By a workflow on tags. See .github/workflows/release.yml.' },
  }),
  model(0, 'I search the workflows.', 902, { name: 'claude-haiku-5', path: ['researcher'] }),
  call([0, 'grep'], 'npm publish', { ms: 31, path: ['researcher'] }),
  model(3, 'First I run the tests.', 1_190, { forkAt: 23 }),
  bash(3, 'npm test', {
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
    more: { output: '3 passed, 1 failed\n  ✖ publish.test.ts: the tag exists' },
  }),
  model(4, 'The tests fail because of an old tag. I fixed the test.', 3_114, { forkAt: 29 }),
  {
    kind: 'votes',
    step: 4,
    text: 'continues (tests-must-pass)',
    said: [
      { hook: 'completion', cell: 's', decision: 'allowStop', message: STOPS },
      { hook: 'tests-must-pass', cell: 'c', decision: 'requestContinuation', message: FAILED },
    ],
    more: {
      votes: {
        shouldContinue: true,
        resolvedBy: 'tests-must-pass',
        how: '"tests-must-pass" decided by requestContinuation: forbidContinuation beats requestContinuation beats allowStop beats allowContinuation.',
        evaluations: [
          { decision: 'allowStop', reason: 'completed', message: STOPS, source: 'completion' },
          { decision: 'requestContinuation', reason: 'stopRequested', message: FAILED, source: 'tests-must-pass' },
        ],
      },
    },
  },
  model(5, 'Now the clean-up.', 988, { forkAt: 34 }),
  bash(5, 'rm -r build/ old-notes.md', {
    status: 'asked',
    ms: undefined,
    question: question.id,
    said: [{ hook: 'ask-rm', cell: '?', decision: 'ask', message: DELETE }],
    more: { args: question.toolCall.args, question },
  }),
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
  input: INPUT,
  status: 'suspended',
  live: false,
  startedAt: START,
  endedAt: START + 64_000,
  usage: { ...noUsage, inputTokens: 24_720, outputTokens: 960, costUsd: 0.0486, steps: 6, toolCalls: 6 },
  decided: { by: 'ask-rm', definedAt: '.hookloop/hooks.json:8', message: DELETE },
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
