import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { summarization } from '../../../capabilities/summarization/summarization.ts'
import { createAgent } from '../../../create-agent.ts'
import { scriptedModel } from '../../../models/scripted.ts'
import { memoryStore } from '../../../sessions/stores/memory-store.ts'
import { claudeHooks } from '../claude-hooks.ts'
import { fireCommand, HookProject } from '../hook-project.fixture.ts'

/** The variables and the warnings of a hook that does this with its file. */
async function exported(command: string) {
  const { merged, ran } = await fireCommand('SessionStart', command, { input: { source: 'startup' } })
  return { variables: merged.other?.['environment'], problem: ran[0]!.answer.problem }
}

describe('CLAUDE_ENV_FILE', { concurrency: 2 }, () => {
  test('the file can set PATH, also to a folder without programs', async () => {
    const { variables } = await exported(`echo 'export PATH=/nowhere COLOUR=red' >> "$CLAUDE_ENV_FILE"`)
    assert.deepEqual(variables, { PATH: '/nowhere', COLOUR: 'red' })
  })

  test('the file may be deleted or empty', async () => {
    for (const command of ['rm "$CLAUDE_ENV_FILE"', 'true'])
      assert.deepEqual(await exported(command), { variables: undefined, problem: undefined })
  })

  for (const [what, command, problem] of [
    ['is a pipe', 'rm "$CLAUDE_ENV_FILE"; mkfifo "$CLAUDE_ENV_FILE"', /not a file any more/],
    ['has no end', 'ln -sf /dev/zero "$CLAUDE_ENV_FILE"', /not a file any more/],
    ['is a link to itself', 'ln -sf env.sh "$CLAUDE_ENV_FILE"', /not a file any more/],
    ['is long', `head -c 2000000 /dev/zero | tr '\\0' '#' > "$CLAUDE_ENV_FILE"`, /too large/],
    ['exits', `echo 'export COLOUR=red; exit 0' > "$CLAUDE_ENV_FILE"`, /end the shell/],
    ['kills', `echo 'export COLOUR=red; kill -9 $$' > "$CLAUDE_ENV_FILE"`, /end the shell/],
  ] as const) {
    test(`if the file ${what}, nothing is exported, nothing hangs, and there is a warning`, async () => {
      const { variables, problem: told } = await exported(command)
      assert.equal(variables, undefined)
      assert.match(told!, problem)
    })
  }

  test('variables are not stored again after a compaction', async () => {
    using project = new HookProject()
    const exports = 'echo "export WORD=open-$((40 + 2))" >> "$CLAUDE_ENV_FILE"; echo compacted'
    project.settings({
      hooks: {
        SessionStart: [{ matcher: 'compact', hooks: [{ type: 'command', command: exports }] }],
        PreToolUse: [{ hooks: [{ type: 'prompt', prompt: 'Is that right?' }] }],
      },
    })
    const store = memoryStore()
    const hooks = claudeHooks({ dir: project.dir, trust: 'all', home: false })
    const use = [summarization({ summarize: () => 'numbers' }), hooks]
    const session = createAgent({ model: scriptedModel(['One.', 'Two.', 'Three.']), store, use }).session('s')
    await session.send('First, and this is quite a long text.')
    await session.send('Second, and this one is quite long as well.')
    await session.compact()
    await session.send('Third.')
    const kept = (await store.read('s'))!.lines.join('\n')
    assert.match(kept, /compacted/)
    assert.doesNotMatch(kept, /open-42/)
  })
})
