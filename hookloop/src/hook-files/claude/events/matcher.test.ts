import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../../values/json.ts'
import type { ClaudeEvent } from './claude-events.ts'
import { HookProject, saidOf } from '../hook-project.fixture.ts'
import { toMatcher } from './matcher.ts'

type MatcherRow = readonly [matcher: string | undefined, value: string, fits: boolean, why: string]

const tools: readonly MatcherRow[] = [
  [undefined, 'Bash', true, 'no matcher matches all'],
  ['', 'Bash', true, 'an empty matcher matches all'],
  ['*', 'Bash', true, 'a star matches all'],
  ['Bash', 'Bash', true, 'a word is compared'],
  ['Bash', 'BashOutput', false, 'a word is no beginning of a word'],
  ['bash', 'Bash', false, 'case matters'],
  ['Edit|Write', 'Write', true, 'a bar divides words'],
  ['Edit,Write', 'Write', true, 'a comma divides words'],
  ['Edit , Write', 'Write', true, 'spaces around words do not count'],
  ['Edit | Write', 'Edit', true, 'nor do those around a bar'],
  ['Edit|Write', 'MultiEdit', false, 'words in a list are compared as a whole'],
  ['mcp__memory', 'mcp__memory__create', false, 'a server is not its tools'],
  ['mcp__memory__.*', 'mcp__memory__create', true, 'a dot makes it an expression'],
  ['mcp__a-b', 'mcp__a-b', true, 'a hyphen is part of a word'],
  ['mcp__a-b', 'mcp__a-b-evil', false, 'also at its end'],
  ['Edit.*', 'NotebookEdit', true, 'an expression may match anywhere'],
  ['^Edit.*', 'NotebookEdit', false, 'unless it says where'],
  ['plugin:agent', 'plugin:agent', true, 'a colon makes it an expression'],
  ['(?!Bash).*sh', 'Bash', true, 'looking ahead works as in JavaScript'],
  ['^(?!mcp__)', 'Read', true, 'so does leaving out'],
  ['^(?!mcp__)', 'mcp__x__y', false, 'and it leaves out'],
]

describe('a matcher', () => {
  for (const [matcher, value, fits, why] of tools) {
    test(`${why}: ${JSON.stringify(matcher)} and ${value}`, () => {
      assert.equal(toMatcher(matcher, 'PreToolUse').matches(value), fits)
    })
  }
})

const narrow: readonly (readonly [ClaudeEvent, ...MatcherRow])[] = [
  ['FileChanged', '.envrc|.env', '.env', true, 'a dot makes an expression of names of files'],
  ['FileChanged', 'Makefile|package', 'package', true, 'words are compared'],
  ['FileChanged', 'a,b', 'a', false, 'a comma is no divider there'],
  ['StopFailure', 'rate_limit|overloaded', 'overloaded', true, 'a bar divides'],
  ['StopFailure', 'rate-limit', 'x rate-limit y', true, 'a hyphen makes it an expression'],
]

describe('a matcher of FileChanged or StopFailure', () => {
  for (const [event, matcher, value, fits, why] of narrow) {
    test(`${why}: ${matcher} and ${value}`, () => {
      assert.equal(toMatcher(matcher, event).matches(value), fits)
    })
  }
})

async function firedWith(matcher: string, input: JsonObject, event: ClaudeEvent = 'PreToolUse'): Promise<JsonObject> {
  using project = new HookProject()
  project.handlers(event, [{ type: 'command', command: 'exit 2' }], matcher)
  return saidOf(await project.fire(event, input))
}

test('a matcher can use the names of Claude Code for tools of Hookloop', async () => {
  const fired = (matcher: string): Promise<JsonObject> =>
    firedWith(matcher, { toolCall: { id: '1', name: 'write_file', args: { path: 'a' } } })
  assert.deepEqual(
    [await fired('Write'), await fired('write_file'), await fired('Edit')],
    [{ decision: 'deny' }, { decision: 'deny' }, { decision: 'none' }],
  )
})

test('a matcher can use the former and the current name of the Agent tool', async () => {
  const all = [
    await firedWith('Task', { tool_name: 'Agent', tool_input: {} }),
    await firedWith('Agent', { tool_name: 'Task', tool_input: {} }),
    await firedWith('Agent', { tool_name: 'Agent', tool_input: {} }),
  ]
  assert.deepEqual(
    all,
    ['deny', 'deny', 'deny'].map((decision) => ({ decision })),
  )
})

test('an invalid matcher at PreToolUse denies all calls', async () => {
  const { decision, reason } = await firedWith('Bash(', { tool_name: 'Read', tool_input: {} })
  assert.equal(decision, 'deny')
  assert.match(reason as string, /"Bash\(" is not a valid regular expression/)
})

test('an invalid matcher at other events matches nothing', async () => {
  assert.deepEqual(await firedWith('Bash(', { tool_name: 'Bash', tool_input: {} }, 'PostToolUse'), { decision: 'none' })
})

type IfRow = readonly [rule: string, input: JsonObject, runs: boolean, why: string]

const bash = (command: string): JsonObject => ({ tool_name: 'Bash', tool_input: { command } })
const edit = (file_path: string): JsonObject => ({ tool_name: 'Edit', tool_input: { file_path } })

const rules: readonly IfRow[] = [
  ['Bash', bash('ls'), true, 'a tool without a pattern'],
  ['Edit', bash('ls'), false, 'another tool'],
  ['Bash(git *)', bash('git status'), true, 'a command with anything behind it'],
  ['Bash(git *)', bash('git'), true, 'or nothing'],
  ['Bash(git *)', bash('gitk'), false, 'but not another word'],
  ['Bash(git:*)', bash('git push'), true, 'the older way of writing it'],
  ['Bash(npm test)', bash('npm test'), true, 'a whole command'],
  ['Bash(npm test)', bash('npm test --watch'), false, 'and no longer one'],
  ['Bash(git *)', bash('GIT_PAGER=cat git log'), true, 'assignments in front are left out'],
  ['Bash(rm *)', bash('ls && rm -rf x'), true, 'every command of a line is looked at'],
  ['Bash(rm *)', bash('ls | xargs echo; rm x'), true, 'whatever divides them'],
  ['Bash(rm *)', bash('echo $(rm x)'), true, 'also inside $()'],
  ['Bash(rm *)', bash('echo `rm x`'), true, 'and inside backticks'],
  ['Bash(rm *)', bash('echo hello'), false, 'a command that is not there'],
  ['Bash(git push *)', bash('git $VERB origin'), true, 'more than the name, and a variable: uncertain'],
  ['Bash(git push *)', bash('git $(cat verb)'), true, 'more than the name, and $(): uncertain'],
  ['Bash(git push *)', bash('git status'), false, 'more than the name, all of it plain'],
  ['Bash(rm *)', bash("echo 'unfinished"), true, 'a command that cannot be read'],
  ['Edit(*.ts)', edit('src/a.ts'), true, 'a name at any depth'],
  ['Edit(*.ts)', edit('src/a.js'), false, 'another ending'],
  ['Edit(src/**)', edit('src/deep/a.ts'), true, 'a folder of the working directory'],
  ['Edit(src/**)', edit('lib/src/a.ts'), false, 'not in other folders'],
  ['Edit(**/src/**)', edit('lib/src/a.ts'), true, 'at any depth'],
  ['Edit(**/.env)', edit('../other/.env'), true, 'also outside of the working directory'],
  ['Edit(**/.env)', edit('/srv/app/.env'), true, 'and with an absolute path'],
  ['Edit(src/**)', edit('src/../lib/a.ts'), false, 'a path is resolved first'],
  ['mcp__github__*', { tool_name: 'mcp__github__push', tool_input: {} }, true, 'all tools of a server'],
  ['Bash(git *', bash('ls'), true, 'with an invalid rule the handler runs'],
]

describe('"if" of a handler', { concurrency: 4 }, () => {
  for (const [rule, input, runs, why] of rules) {
    test(`${why}: ${rule} and ${JSON.stringify(input['tool_input'])}`, async () => {
      using project = new HookProject()
      project.handlers('PreToolUse', [{ type: 'command', command: 'exit 2', if: rule }])
      const { ran } = await project.fire('PreToolUse', input)
      assert.equal(ran.length, runs ? 1 : 0)
    })
  }
  for (const event of ['PostToolUse', 'PostToolUseFailure', 'PermissionRequest', 'PermissionDenied'] as const) {
    test(`"if" applies at ${event}`, async () => {
      using project = new HookProject()
      const handler = (rule: string): JsonObject => ({ type: 'command', command: `echo ${rule}`, if: rule })
      project.handlers(event, [handler('Bash'), handler('Edit')])
      const { ran } = await project.fire(event, bash('ls'))
      assert.deepEqual(
        ran.map(({ handler: { if: rule } }) => rule),
        ['Bash'],
      )
    })
  }
  for (const event of ['UserPromptSubmit', 'Stop', 'SessionStart', 'PostToolBatch'] as const) {
    test(`a handler with "if" never runs at ${event}`, async () => {
      using project = new HookProject()
      project.handlers(event, [{ type: 'command', command: 'exit 2', if: '*' }])
      const { ran } = await project.fire(event, { ...bash('ls'), prompt: 'x', source: 'startup' })
      assert.equal(ran.length, 0)
    })
  }
})
