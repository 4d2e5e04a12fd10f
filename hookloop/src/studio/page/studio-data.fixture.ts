import type { Comparison, HooksReport, SessionSummary, StudioInfo, WhatIfReport } from '../api.types.ts'
import type { Question } from '../run.types.ts'
import { exampleRun, question, START } from './run-data.fixture.ts'

// What a studio answers about a store with some sessions.

export const editQuestion: Question = {
  session: 'fix-types-01',
  title: 'Fix the type error in the parser.',
  agent: 'coder',
  id: 'ask-2#19c0ffee00aa',
  hash: '19c0ffee00aa11bb22cc33dd44ee55ff',
  tool: 'edit_file',
  args: {
    path: 'src/parser.ts',
    old_string: 'export function parse(text: string) {\n  const tokens = lex(text)\n  return build(tokens)\n}',
    new_string:
      'export function parse(text: string): Tree {\n  const tokens = lex(text)\n  return build(tokens, { strict: true })\n}',
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
  createdAt: START - i * 3_600_000,
  updatedAt: START - i * 1_900_000,
  steps: 6 + ((i * 13) % 40),
  tokens: 25_680 * (i + 1),
  costUsd: 0.0486 * (i + 1),
  pending: i < 2 ? 1 : 0,
}))

export const hooksReport: HooksReport = {
  files: [
    {
      hook: 'ask-rm',
      trigger: 'beforeToolUse',
      mode: 'guard',
      runs: 'node .hookloop/ask-rm.mjs',
      matcher: 'bash',
      source: '.hookloop/hooks.json',
      trust: 'trusted',
    },
    {
      hook: 'format',
      trigger: 'afterToolUse',
      mode: 'hook',
      runs: 'prettier --write "$FILE"',
      matcher: 'edit_file',
      source: '.claude/settings.json',
      trust: 'changed',
      problem: 'The file has changed since it was trusted. Run `hookloop trust`.',
    },
    {
      hook: 'notify',
      trigger: 'onStop',
      mode: 'observe',
      runs: 'https://hooks.example/notify',
      source: '~/.claude/settings.json',
      trust: 'own',
    },
  ],
  agent: [
    { hook: 'no-push', mode: 'guard', triggers: ['beforeToolUse'], shadow: false, definedAt: 'agent.ts:12' },
    { hook: 'no-ls', mode: 'guard', triggers: ['beforeToolUse'], shadow: true, definedAt: 'shadow.ts:4' },
    { hook: 'redact-secrets', mode: 'transform', triggers: ['afterToolUse'], shadow: false },
  ],
  problems: [],
  counts: [
    {
      hook: 'no-ls',
      shadow: true,
      blocked: 14,
      asked: 0,
      changed: 0,
      stopped: 0,
      failed: 0,
      latest: [],
    },
    {
      hook: 'no-push',
      definedAt: 'agent.ts:12',
      shadow: false,
      blocked: 3,
      asked: 0,
      changed: 0,
      stopped: 0,
      failed: 0,
      latest: [{ session: question.session, run: 1, decision: 'block', text: 'Agents never push.' }],
    },
    {
      hook: 'ask-rm',
      definedAt: '.hookloop/hooks.json:8',
      shadow: false,
      blocked: 0,
      asked: 9,
      changed: 0,
      stopped: 0,
      failed: 1,
      latest: [{ session: question.session, run: 1, decision: 'ask', text: 'Deletes files that are not in git.' }],
    },
    {
      hook: 'redact-secrets',
      shadow: false,
      blocked: 0,
      asked: 0,
      changed: 41,
      stopped: 0,
      failed: 0,
      latest: [],
    },
  ],
  runs: 57,
}

const { index, id, input, status, live, startedAt, usage } = exampleRun.run
export const comparison: Comparison = {
  a: { session: question.session, index, id, input, status, live, startedAt, usage },
  b: { session: 's-other', index: 0, id: 'run-9', input, status: 'completed', live: false, startedAt, usage },
  same: false,
  partsAt: { step: 1, in: 'the calls' },
  steps: [
    { step: 0, differs: [] },
    {
      step: 1,
      differs: ['calls'],
      a: {
        text: 'The build is ready. I publish it.',
        calls: [
          {
            name: 'bash',
            args: { command: 'git push origin main' },
            status: 'blocked',
            output: 'Agents never push.',
            by: 'no-push',
          },
        ],
        votes: [],
        errors: [],
      },
      b: {
        text: 'The build is ready. I open a pull request.',
        calls: [
          { name: 'bash', args: { command: 'gh pr create' }, status: 'ok', output: 'https://example.com/pull/12' },
        ],
        votes: ['completion: allowStop'],
        errors: [],
      },
    },
  ],
  hooks: { a: ['no-push'], b: [] },
}
