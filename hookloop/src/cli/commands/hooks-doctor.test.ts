import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { anHour, countWith, until } from '../../system/processes/processes.fixture.ts'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

const quiet = 'cat > /dev/null'
const judge = { name: 'judge', on: 'beforeToolUse', mode: 'guard', tool: 'work', shell: 'cat > /dev/null; exit 2' }
const paths = ['run', 'stream', 'iterate', 'parallel', 'session', 'resume', 'subagent']

type Report = {
  readonly hooks: readonly {
    readonly name: string
    readonly paths: { readonly [path: string]: { readonly status: string; readonly why?: string } }
  }[]
  readonly problems: readonly string[]
  readonly notes: readonly string[]
}

async function examine(project: ProjectWithHooks, ...args: readonly string[]) {
  const { code, stdout } = await project.hookloop(['hooks', 'doctor', '--json', ...args])
  const report = JSON.parse(stdout) as Report
  /** The paths on which each hook was seen, in a line. */
  const seen = Object.fromEntries(
    report.hooks.map(({ name, paths: on }) => [name, paths.filter((path) => on[path]!.status === 'ok').join(' ')]),
  )
  return { code, ...report, seen }
}

const everywhere = paths.join(' ')
const outside = everywhere.replace(' subagent', '')

describe('hookloop hooks doctor', { concurrency: 2 }, () => {
  test('checks that guards fire exactly once on every path, and runs no tool', async () => {
    const project = new ProjectWithHooks()
    project.hooks(
      judge,
      { name: 'steps', on: ['beforeStep', 'afterToolUse', 'onUserInput'], mode: 'guard', shell: judge.shell },
      { name: 'summing', on: ['beforeCompaction', 'afterCompaction'], mode: 'guard', shell: judge.shell },
      { name: 'asked', on: ['afterInference', 'onStop'], mode: 'guard', shell: quiet },
    )
    await project.trust('--yes')
    const { code, seen, problems } = await examine(project, '--agent', project.agent)
    assert.deepEqual([code, problems, project.marked()], [0, [], []])
    assert.deepEqual(seen, { judge: everywhere, steps: everywhere, summing: everywhere, asked: everywhere })
  })

  test('reports where a hook has nothing to do, and why', async () => {
    const project = new ProjectWithHooks()
    project.hooks(
      { name: 'session', on: ['onSessionStart', 'onSessionEnd'], mode: 'hook', shell: quiet },
      { name: 'pause', on: ['onPause', 'onResume'], mode: 'observe', shell: quiet },
      { name: 'child', on: 'onSubagentStop', mode: 'guard', shell: quiet },
      { name: 'error', on: 'onError', mode: 'hook', shell: quiet },
      { name: 'guest', on: 'beforeToolUse', mode: 'guard', when: { metadata: { role: 'guest' } }, shell: quiet },
    )
    await project.trust('--yes')
    const { code, seen, hooks, notes } = await examine(project)
    assert.equal(code, 0)
    assert.deepEqual(seen, {
      session: 'session',
      pause: 'resume',
      child: 'subagent',
      error: outside,
      guest: everywhere,
    })
    const why = Object.fromEntries(hooks.map(({ name, paths: on }) => [name, on['subagent']!.why]))
    assert.match(why['session']!, /no session/)
    assert.match(why['pause']!, /no run is suspended for approval/)
    assert.match(why['error']!, /inherits guards and observers, not transforms/)
    assert.ok(notes.some((note) => /"when" of guest/.test(note)))
  })

  test('checks hooks that call a model, and calls no model', async () => {
    const project = new ProjectWithHooks()
    const model = 'anthropic/claude-haiku-4-5' // there is no key, and no package need be there
    project.hooks(
      { name: 'prompt', on: 'beforeToolUse', mode: 'guard', prompt: { prompt: 'Is it safe?', model } },
      { name: 'outcome', on: 'onStop', mode: 'hook', prompt: { prompt: 'Is it done?', answer: 'outcome' } },
      { name: 'agent', on: 'beforeToolUse', mode: 'guard', subagent: { prompt: 'Is it?', tools: ['bash'], model } },
    )
    const ask = (type: string): object => ({ type, prompt: 'Is it? $ARGUMENTS', model: 'haiku' })
    project.write('.claude/settings.json', {
      hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [ask('prompt')] }], Stop: [{ hooks: [ask('agent')] }] },
    })
    await project.trust('--yes')
    const { code, seen, problems } = await examine(project)
    assert.deepEqual([code, problems], [0, []])
    assert.deepEqual(seen, {
      prompt: everywhere,
      outcome: outside,
      agent: everywhere,
      'PreToolUse prompt: Is it? $ARGUMENTS': everywhere,
      'Stop agent: Is it? $ARGUMENTS': outside, // there, it is a SubagentStop
    })
  })

  test('checks each Claude Code handler separately', async () => {
    const project = new ProjectWithHooks()
    const running = (word: string, exitCode: number): readonly object[] => [
      { type: 'command', command: `${quiet}; ${project.mark(word)}; exit ${exitCode}` },
    ]
    const group = (word: string, matcher?: string, exitCode = 2): object[] => [
      { matcher, hooks: running(word, exitCode) },
    ]
    project.write('.claude/settings.json', {
      hooks: {
        UserPromptSubmit: group('prompt'),
        PreToolUse: group('pre', 'work'),
        PermissionRequest: group('question', '*', 0), // exit code 2 has no effect there, which is a problem
        PostToolUseFailure: group('failure'),
        PostToolUse: group('never', 'nothing'),
        StopFailure: group('broken'),
        SubagentStop: group('child', 'Explore'),
        SessionStart: group('again', 'resume'),
        PreCompact: group('summing'),
        SubagentStart: group('begins', 'Explore'),
        TaskCompleted: group('task'),
        Notification: group('notice'),
        PermissionDenied: group('denied'),
        MessageDisplay: group('shown'),
      },
    })
    await project.trust('--yes')
    const { code, seen, problems } = await examine(project, '--agent', project.agent)
    const byEvent = Object.fromEntries(Object.entries(seen).map(([name, on]) => [name.split(' ')[0], on]))
    assert.deepEqual(byEvent, {
      UserPromptSubmit: outside,
      PreToolUse: everywhere,
      PermissionRequest: everywhere,
      PostToolUseFailure: everywhere,
      PostToolUse: '',
      StopFailure: everywhere,
      SubagentStop: 'subagent',
      SessionStart: 'session',
      PreCompact: everywhere,
      SubagentStart: everywhere,
      TaskCompleted: everywhere,
      Notification: everywhere,
      PermissionDenied: everywhere,
      MessageDisplay: outside,
    })
    assert.equal(code, 1)
    assert.match(
      problems.join('\n'),
      /^the hook "PostToolUse .*" is for the tool nothing, which the agent does not have$/,
    )
    const words = ['again', 'begins', 'broken', 'child', 'denied', 'failure', 'pre', 'prompt', 'question', 'shown']
    // An observer ends with its run, which does not wait for it: it has started, and may not have written its mark.
    const marks = new Set(project.marked().filter((mark) => mark !== 'notice'))
    assert.deepEqual([...marks].toSorted(), [...words, 'summing', 'task'])
  })

  test('reports every problem', async () => {
    const project = new ProjectWithHooks()
    const rewriting = (name: string, to: string): object => ({
      name,
      on: 'beforeToolUse',
      mode: 'hook',
      shell: `echo '{"updatedInput":{"to":"${to}"}}'`,
    })
    project.write('check.py', 'pass')
    project.hooks(
      { ...judge, tool: 'Work' },
      { name: 'gone', on: 'onStop', mode: 'guard', shell: './gone.sh --fast' },
      { name: 'script', on: 'onStop', mode: 'guard', shell: 'sh hooks/gone.sh' },
      { name: 'closed', on: 'onStop', mode: 'guard', shell: './check.py' },
      { name: 'unknown', on: 'onStop', mode: 'guard', shell: { args: ['no-such-program-anywhere'] } },
      { name: 'crashes', on: 'onStop', mode: 'guard', shell: `${quiet}; echo Broken. >&2; exit 3` },
      rewriting('one', 'a'),
      rewriting('two', 'b'),
    )
    project.write('.claude/settings.json', {
      hooks: { WorktreeRemove: [{ hooks: [{ type: 'command', command: 'true' }] }] },
    })
    const untrusted = await examine(project)
    assert.ok(untrusted.problems.some((each) => /hooks\.json is not trusted.* trust$/.test(each)))
    assert.deepEqual(untrusted.hooks, [])
    await project.trust('--yes')
    const { code, problems } = await examine(project, '--agent', project.agent)
    const expected = [
      /"gone" cannot run: ".\/gone\.sh" does not exist/,
      /"script" cannot run: "hooks\/gone\.sh" does not exist/,
      /"closed" cannot run: ".\/check\.py" is not executable/,
      /"unknown" cannot run: "no-such-program-anywhere" was not found/,
      /"crashes" fails, so it blocks: .*Broken/,
      /WorktreeRemove in .*settings\.json never fires in Hookloop/,
      /the guard "judge" is for the tool Work, which the agent does not have\. Did you mean "work"\?/,
      /"one" and "two" both change args\.to; the last one wins/,
    ]
    assert.equal(code, 1)
    for (const words of expected)
      assert.ok(
        problems.some((each) => words.test(each)),
        `${words}\n${problems.join('\n')}`,
      )
    assert.deepEqual([problems.length, project.marked()], [expected.length, []])
  })

  test('reports an invalid file with the line', async () => {
    const project = new ProjectWithHooks()
    writeFileSync(project.hooks(judge), '{\n"hooks": [{ "on": "nowhere" }]\n}')
    const { code, problems } = await examine(project)
    assert.deepEqual([code, problems.some((each) => /hooks\.json:2: /.test(each))], [1, true])
  })

  test('reports that there are no hooks to check', async () => {
    const { code, stdout, stderr } = await new ProjectWithHooks().hookloop(['hooks', 'doctor'])
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(stdout, /^No hooks to check/)
  })

  test('is cancelled at once with Ctrl-C, and leaves no process', async () => {
    const project = new ProjectWithHooks()
    const time = anHour()
    project.hooks({ name: 'slow', on: 'onUserInput', mode: 'guard', shell: `sleep ${time}` })
    await project.trust('--yes')
    const started = project.start(['hooks', 'doctor'])
    assert.ok(await until(() => countWith(time) > 0, 60_000))
    started.kill('SIGINT')
    const { code, stdout, stderr } = await started.ended
    assert.deepEqual([code, stdout], [130, ''])
    assert.match(stderr, /Cancelled/)
    assert.ok(await until(() => countWith(time) === 0))
  })
})
