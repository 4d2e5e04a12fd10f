import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import type { PendingApproval } from '../../sessions/session/approvals.ts'
import { ScriptedProject } from '../scripted-project.fixture.ts'

const agent = ['--agent', 'agent.ts']

async function asked(text: string, project = new ScriptedProject()) {
  const { code, stderr, stdout } = await project.hookloop(['run', text, ...agent, '--session', 'ship'])
  const ids = [...stderr.matchAll(/ approve (\w+),/g)].map(([, id]) => id!)
  return { project, code, stderr, stdout, ids, id: ids[0]! }
}

describe('a run that asks for approval without a terminal', { concurrency: 2 }, () => {
  test('is suspended, approved by a second command and resumed by another process, once', async () => {
    const { project, code, stderr, id } = await asked('deploy production')
    assert.equal(code, 4)
    assert.match(stderr, /^then: +\S.* resume ship$/m)
    assert.deepEqual(project.done(), [])
    const approved = await project.hookloop(['approve', id])
    assert.deepEqual([approved.code, project.done()], [0, []])
    assert.match(approved.stderr, /^Approved: deploy \{"to":"production"\} in ship\.\nResume with: .* resume ship\n$/)
    const resumed = await project.start(['resume', 'ship']).ended
    assert.deepEqual([resumed.code, resumed.stdout], [0, 'It says: live on production\n'])
    const again = await project.hookloop(['resume', 'ship'])
    assert.equal(again.code, 2)
    assert.match(again.stderr, /The session "ship" has no run to resume\. Continue it with: .* chat --session ship/)
    assert.deepEqual(project.done(), ['deployed to production'])
  })

  test('prints command lines for new input that it does not take', async () => {
    const { project, id } = await asked('deploy production')
    const again = await project.hookloop(['run', 'hello', ...agent, '--session', 'ship'])
    assert.equal(again.code, 2)
    assert.match(
      again.stderr,
      new RegExp(
        `error: The session "ship" waits for an approval and takes no new input\\.\nanswer: .* approve ${id}, or .* block ${id}\n` +
          'then: +\\S.* resume ship\nor: +add --on-new-input block to end the run and take the message\n$',
      ),
    )
    const blocked = await project.hookloop(['run', 'hello', ...agent, '--session', 'ship', '--on-new-input', 'block'])
    assert.deepEqual([blocked.code, project.done()], [0, []])
  })

  test('does not run a blocked call, and the model receives the reason', async () => {
    const { project, id } = await asked('deploy production')
    const { code, stdout } = await project.hookloop(['block', id, '--reason', 'Not on Fridays.', '--resume', '--quiet'])
    assert.deepEqual([code, stdout, project.done()], [0, 'It says: Not on Fridays.\n', []])
  })

  test('runs the call with other arguments if those were approved', async () => {
    const { project, id } = await asked('deploy production')
    const { stdout } = await project.hookloop(['approve', id, '--args', '{"to":"staging"}', '--resume', '-q'])
    assert.deepEqual([stdout, project.done()], ['It says: live on staging\n', ['deployed to staging']])
  })
})

describe('hookloop approvals', { concurrency: 2 }, () => {
  test('prints the complete call, who asks, and the session', async () => {
    const { project, id } = await asked('deploy pro\u202Educ')
    const [shown, json] = await Promise.all([
      project.hookloop(['approvals']),
      project.hookloop(['approvals', '--json']),
    ])
    const [first] = JSON.parse(json.stdout) as (PendingApproval & { shortId: string })[]
    assert.equal(
      shown.stdout,
      `${id}  deploy {\n    "to": "pro\\u{202e}duc"\n  }\n  Deploy to pro\\u{202e}duc? (asked by careful in ship)\n`,
    )
    assert.deepEqual([first?.shortId, first?.session, first?.toolCall.name], [id, 'ship', 'deploy'])
  })

  test('leaves out an approval whose id does not match its call, and it cannot be answered', async () => {
    const { project, id } = await asked('deploy production')
    const database = new DatabaseSync(project.path('data/hookloop/sessions.db'))
    database.exec(`UPDATE sessions SET head = replace(head, '"production"', '"nowhere"')`)
    database.close()
    const [shown, approved] = [await project.hookloop(['approvals']), await project.hookloop(['approve', id])]
    assert.deepEqual([shown.stdout, approved.code], ['', 2])
  })
})

describe('an answer to an approval', { concurrency: 2 }, () => {
  test('is accepted once', async () => {
    const { project, id } = await asked('deploy production')
    const ends = await Promise.all([project.start(['approve', id]).ended, project.start(['approve', id]).ended])
    const codes = ends.map(({ code }) => code!).toSorted((a, b) => a - b)
    assert.ok(codes[0] === 0 && codes[1] !== 0, codes.join())
    const late = await project.hookloop(['block', id])
    assert.deepEqual([late.code, late.stderr.includes('It may have been answered already.')], [2, true])
  })

  test('needs an id of at least four characters that matches one approval', async () => {
    const { project, id } = await asked('deploy production')
    const wrong = [id.slice(0, 3), 'ffffffff', 'ship', '../../etc', '']
    const ends = await Promise.all(wrong.map((each) => project.hookloop(['approve', each])))
    assert.deepEqual(
      ends.map(({ code }) => code),
      wrong.map(() => 2),
    )
    assert.match(ends[0]!.stderr, /Type at least 4 characters/)
  })

  test('needs the complete id where two sessions ask for the same call', async () => {
    const { project, id } = await asked('deploy production')
    await project.hookloop(['run', 'deploy production', ...agent, '--session', 'other'])
    const { code, stderr } = await project.hookloop(['approve', id])
    assert.equal(code, 2)
    const [whole] = /\S+#\w+/.exec(stderr) ?? []
    assert.match(stderr, /matches 2 approvals\. Use one of these ids:\n {2}\S+#\w+\n {2}\S+#\w+\n$/)
    assert.equal((await project.hookloop(['approve', whole!])).code, 0)
  })

  test('with invalid arguments is rejected, and nothing is stored', async () => {
    const { project, id } = await asked('deploy production')
    const ends = [
      await project.hookloop(['approve', id, '--args', '[1]']),
      await project.hookloop(['approve', id, '--args', '{']),
      await project.hookloop(['approve', id, '--args', '{"id":9007199254740993}']),
    ]
    assert.deepEqual(
      ends.map(({ code, stderr }) => [code, stderr.startsWith('error: --args must be a JSON object')]),
      [
        [2, true],
        [2, true],
        [2, true],
      ],
    )
    assert.equal((await project.hookloop(['approve', id])).code, 0)
  })
})
