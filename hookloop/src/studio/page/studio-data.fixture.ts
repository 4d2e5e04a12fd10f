import type { Comparison, HooksReport, SessionSummary, StudioInfo, WhatIfReport } from '../api.types.ts'
import { noTokens } from '../../core/state/usage.ts'
import type { Question } from '../run.types.ts'
import { exampleRun, question, START } from './run-data.fixture.ts'

// What a studio answers about a store with some sessions.

export const editQuestion: Question = {
  session: 'fix-types-01',
  title: 'Fix the type error in the parser.',
  agent: 'coder',
  id: 'ask-2#19c0ffee00aa',
  hash: '19c0ffee00aa11bb22cc33dd44ee55ff',
  by: 'ask-edits',
  toolCall: {
    id: 'call-9',
    name: 'edit_file',
    args: {
      path: 'src/parser.ts',
      old_string: 'export function parse(text: string) {\n  const tokens = lex(text)\n  return build(tokens)\n}',
      new_string:
        'export function parse(text: string): Tree {\n  const tokens = lex(text)\n  return build(tokens, { strict: true })\n}',
    },
  },
  message: 'Changes a file outside of the task.',
  asks: [{ by: 'ask-edits', message: 'Changes a file outside of the task.' }],
  askedAt: START + 90_000,
}

export const studioInfo: StudioInfo = {
  version: '0.1.0',
  store: '~/code/site/.hookloop/sessions.db',
  dir: '~/code/site',
  agent: { name: 'release-bot', file: 'agent.ts' },
  hookFiles: ['stricter.ts'],
  user: 'dev',
}

export const whatIfReport: WhatIfReport = {
  events: 33,
  differences: [
    {
      step: 1,
      trigger: 'beforeToolUse',
      tool: 'bash',
      row: 5,
      was: 'block by no-push: Agents never push. Open a pull request instead.',
      would: 'nothing',
      changes: [],
      divergence: 'the call would run',
    },
  ],
  divergesAt: {
    step: 1,
    trigger: 'beforeToolUse',
    tool: 'bash',
    row: 5,
    why: 'the call would run, and its output is not recorded.',
  },
  unjudged: [],
}

const titles = [
  'Clean up the folder, run the tests, then publish.',
  'Fix the type error in the parser.',
  'Why does the build fail on Windows?',
  'Write the changelog for 0.2.',
  'Rename the option everywhere.',
  'Summarize yesterday’s incidents.',
  'Upgrade the dependencies.',
  'Find flaky tests.',
  'Translate the docs to German.',
  'Draft the release notes.',
]
const statuses = [
  'suspended',
  'suspended',
  'running',
  'completed',
  'completed',
  'stopped',
  'failed',
  'completed',
  'cancelled',
  'interrupted',
] as const
export const sessions: readonly SessionSummary[] = titles.map((title, i) => ({
  id: i === 0 ? question.session : i === 1 ? editQuestion.session : `s-${(i * 7919).toString(36)}-${i}`,
  title,
  agent: i % 3 === 1 ? 'coder' : 'release-bot',
  cwd: i % 2 === 0 ? '~/code/site' : '~/code/parser',
  status: statuses[i]!,
  live: i === 2,
  updatedAt: START - i * 1_900_000,
  steps: 6 + ((i * 13) % 40),
  tokens: 25_680 * (i + 1),
  costUsd: 0.0486 * (i + 1),
  pending: i < 2 ? 1 : 0,
}))

const none = { shadow: false, blocked: 0, asked: 0, changed: 0, stopped: 0, failed: 0, latest: [] }
const listed = { priority: 0, kind: 'command' } as const
export const hooksReport: HooksReport = {
  files: [
    {
      ...listed,
      name: 'ask-rm',
      trigger: 'beforeToolUse',
      mode: 'guard',
      runs: 'node .hookloop/ask-rm.mjs',
      matcher: 'bash',
      source: '.hookloop/hooks.json',
      trust: 'trusted',
    },
    {
      ...listed,
      name: 'format',
      trigger: 'afterToolUse',
      mode: 'hook',
      runs: 'prettier --write "$FILE"',
      matcher: 'edit_file',
      source: '.claude/settings.json',
      trust: 'changed',
      problem: 'The file has changed since it was trusted. Run `hookloop trust`.',
    },
    {
      ...listed,
      name: 'notify',
      trigger: 'onStop',
      mode: 'observe',
      runs: 'https://hooks.example/notify',
      matcher: undefined,
      source: '~/.claude/settings.json',
      trust: 'own',
    },
  ],
  agent: [
    { name: 'no-push', mode: 'guard', triggers: ['beforeToolUse'], priority: 0 },
    { name: 'no-ls', mode: 'guard', triggers: ['beforeToolUse'], priority: 0, shadow: true },
    { name: 'redact-secrets', mode: 'transform', triggers: ['afterToolUse'], priority: 0 },
  ],
  problems: [],
  counts: [
    { ...none, hook: 'no-ls', shadow: true, blocked: 14 },
    {
      ...none,
      hook: 'no-push',
      definedAt: 'agent.ts:12',
      blocked: 3,
      latest: [{ session: question.session, run: 1, decision: 'block', text: 'Agents never push.' }],
    },
    {
      ...none,
      hook: 'ask-rm',
      definedAt: '.hookloop/hooks.json:8',
      asked: 9,
      failed: 1,
      latest: [{ session: question.session, run: 1, decision: 'ask', text: 'Deletes files that are not in git.' }],
    },
    { ...none, hook: 'redact-secrets', changed: 41 },
  ],
  runs: 57,
}

const { columns: _columns, rows: _rows, ...summary } = exampleRun.run
const step = { index: 1, type: 'toolExecution', errors: [], usage: noTokens } as const
export const comparison: Comparison = {
  a: summary,
  b: { ...summary, session: 's-other', index: 0, id: 'run-9', status: 'completed' },
  same: false,
  partsAt: { step: 1, in: 'toolCalls' },
  steps: [
    { differs: [] },
    {
      differs: ['toolCalls'],
      a: {
        ...step,
        text: 'The build is ready. I publish it.',
        toolCalls: [
          {
            id: '1',
            name: 'bash',
            args: { command: 'git push origin main' },
            result: { status: 'blocked', output: 'Agents never push.', by: 'no-push' },
          },
        ],
      },
      b: {
        ...step,
        text: 'The build is ready. I open a pull request.',
        toolCalls: [
          {
            id: '1',
            name: 'bash',
            args: { command: 'gh pr create' },
            result: { status: 'ok', output: 'https://example.com/pull/12' },
          },
        ],
      },
    },
  ],
  hooks: { a: ['no-push'], b: [] },
}
