import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { JsonObject } from '../../../values/json.ts'
import { toNameTest } from '../../../core/hooks/patterns.ts'
import { readHookFile } from '../../files/read-hook-file.fixture.ts'
import { readGroups } from '../load/handlers.ts'
import { importHooks, type ImportedHooks } from './import-hooks.ts'

const source = { kind: 'project', file: 'settings.json' } as const

function imported(event: string, handler: JsonObject, matcher?: string): ImportedHooks {
  const group = { ...(matcher !== undefined && { matcher }), hooks: [{ prompt: 'Is $ARGUMENTS safe?', ...handler }] }
  const { groups, problems } = readGroups({ [event]: [group] }, source)
  assert.deepEqual(problems, [])
  return importHooks(groups, '.')
}

suite('import of prompt and agent handlers', () => {
  for (const [event, expected] of [
    ['PreToolUse', { on: 'beforeToolUse', mode: 'guard', timeoutMs: 30_000 }],
    ['UserPromptSubmit', { on: 'onUserInput', mode: 'guard', timeoutMs: 30_000 }],
    ['PostToolBatch', { on: 'afterStep', mode: 'guard', when: { stepType: 'toolExecution' }, timeoutMs: 30_000 }],
    ['Stop', { on: 'onStop', mode: 'hook', timeoutMs: 30_000 }],
  ] as const) {
    test(`a prompt handler at ${event} is imported`, () => {
      const { entries, leftOut } = imported(event, { type: 'prompt' })
      const prompt = { prompt: 'Is the event below safe?' }
      assert.deepEqual([entries, leftOut], [[{ name: `${event} prompt`, ...expected, prompt }], []])
      const making = { cwd: '.', projectDir: '.', allowed: { env: [], privateAddresses: false } }
      const file = JSON.stringify({ hooks: entries })
      assert.equal(readHookFile(file, source, { ...making, taken: new Set() }).hooks.length, 1)
    })
  }

  test('an agent handler is imported as a subagent with read-only tools', () => {
    const { entries, differs } = imported('PreToolUse', { type: 'agent', model: 'haiku', timeout: 5 }, 'Bash')
    const { subagent, timeoutMs } = entries[0]!
    assert.deepEqual(
      [subagent, timeoutMs],
      [{ prompt: 'Is the event below safe?', tools: ['read_file', 'list_dir', 'search_files'], maxSteps: 50 }, 5000],
    )
    assert.match(differs.join('\n'), /the model of the agent; set "model" to use "haiku".*if that has them.*toolCall/s)
  })

  for (const [what, event, handler, why] of [
    ['would withhold a result', 'PostToolUse', {}, /withhold the result/],
    ['cannot tell what failed', 'PostToolUseFailure', {}, /failed calls/],
    ['would withhold an answer', 'SubagentStop', {}, /withhold the result of the subagent/],
    ['had no effect', 'PermissionRequest', {}, /no effect in Claude Code either/],
    ['has an "if"', 'PreToolUse', { if: 'Bash(git *)' }, /cannot have "if"/],
    ['has no such moment', 'TaskCreated', {}, /cannot have this event/],
  ] as const) {
    test(`a handler that ${what} is not imported`, () => {
      const { entries, leftOut } = imported(event, { type: 'prompt', ...handler })
      assert.deepEqual(entries, [])
      assert.match(leftOut.join(), why)
    })
  }

  test('a handler whose matcher uses lookaround is not imported', () => {
    assert.match(imported('PreToolUse', { type: 'prompt' }, '^(?!Bash)').leftOut.join(), /uses lookaround/)
  })

  test('the import reports that a block does not end the turn', () => {
    assert.match(imported('PreToolUse', { type: 'prompt' }).differs.join(), /in Claude Code the turn ends/)
    assert.doesNotMatch(
      imported('PreToolUse', { type: 'prompt', continueOnBlock: true }).differs.join(),
      /in Claude Code the turn ends/,
    )
  })
})

suite('import of matchers', () => {
  for (const [matcher, yes, no] of [
    ['Bash', ['bash', 'Bash'], ['BashOutput', 'read_file']],
    ['Edit|Write', ['edit_file', 'write_file', 'Edit'], ['NotebookEdit', 'bash']],
    ['Edit, Read', ['edit_file', 'read_file'], ['write_file']],
    ['Task', ['spawn_subagent', 'Agent'], ['Tasks']],
    ['mcp__memory__.*', ['mcp__memory__get'], ['bash', 'mcp__other__get']],
    ['^(Read|mcp__.*)$', ['read_file', 'mcp__a__b'], ['write_file']],
    ['deploy', ['deploy'], ['deployed']],
    ['.*', ['bash', 'anything'], []],
    ['*', ['bash', 'anything'], []],
  ] as const) {
    test(matcher, () => {
      const tool = imported('PreToolUse', { type: 'prompt' }, matcher).entries[0]!['tool'] as string | undefined
      const expression = tool === undefined ? undefined : /^\/(.*)\/$/.exec(tool)
      const fits = toNameTest(expression ? new RegExp(expression[1]!) : (tool ?? '*'))
      assert.deepEqual([yes.map(fits), no.map(fits)], [yes.map(() => true), no.map(() => false)])
    })
  }
})
