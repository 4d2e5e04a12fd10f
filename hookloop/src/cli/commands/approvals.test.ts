import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import type { PendingApproval } from '../../sessions/session/approvals.ts'
import { Workshop } from '../scripted-project.fixture.ts'

const agent = ['--agent', 'agent.ts']

async function asked(text: string, shop = new Workshop()) {
  const { code, stderr, stdout } = await shop.hookloop(['run', text, ...agent, '--session', 'ship'])
  const ids = [...stderr.matchAll(/ approve (\w+),/g)].map(([, id]) => id!)
  return { shop, code, stderr, stdout, ids, id: ids[0]! }
}

describe('a run that asks and finds nobody there', { concurrency: 2 }, () => {
  test('waits; somebody allows it in another process, and a third one goes on, once', async () => {
    const { shop, code, stderr, id } = await asked('deploy production')
    assert.equal(code, 4)
    assert.match(stderr, /^then: +\S.* resume ship$/m)
    assert.deepEqual(shop.done(), [])
    const approved = await shop.hookloop(['approve', id])
    assert.deepEqual([approved.code, shop.done()], [0, []])
    assert.match(approved.stderr, /^Approved: deploy \{"to":"production"\} in ship\.\nResume with: .* resume ship\n$/)
    const resumed = await shop.hookloop(['resume', 'ship'])
    assert.deepEqual([resumed.code, resumed.stdout], [0, 'It says: live on production\n'])
    const again = await shop.hookloop(['resume', 'ship'])
    assert.equal(again.code, 2)
    assert.match(again.stderr, /The session "ship" has no run to resume\. Continue it with: .* chat --session ship/)
    assert.deepEqual(shop.done(), ['deployed to production'])
  })

  test('waits on when nobody has answered, and says how to', async () => {
    const { shop, id } = await asked('deploy production')
    const [resumed, json] = await Promise.all([shop.hookloop(['resume', 'ship']), shop.result(['resume', 'ship'])])
    assert.deepEqual([resumed.code, resumed.stdout, json.code, json.last.status], [4, '', 4, 'suspended'])
    assert.match(
      resumed.stderr,
      new RegExp(`^ship waits for 1 answer\\.\nanswer: .* approve ${id}, or .* deny ${id}\n$`),
    )
  })

  test('does not do what somebody denies, and the model is told why', async () => {
    const { shop, id } = await asked('deploy production')
    const { code, stdout } = await shop.hookloop(['deny', id, '--reason', 'Not on Fridays.', '--resume', '--quiet'])
    assert.deepEqual([code, stdout, shop.done()], [0, 'It says: Not on Fridays.\n', []])
  })

  test('does it with other arguments, if those are approved', async () => {
    const { shop, id } = await asked('deploy production')
    const { stdout } = await shop.hookloop(['approve', id, '--args', '{"to":"staging"}', '--resume', '-q'])
    assert.deepEqual([stdout, shop.done()], ['It says: live on staging\n', ['deployed to staging']])
  })

  test('goes on with each answer, and waits for the rest', async () => {
    const { shop, ids } = await asked('deploy one two')
    assert.equal(ids.length, 2)
    const first = await shop.hookloop(['approve', ids[0]!, '--resume'])
    assert.deepEqual([first.code, shop.done()], [4, ['deployed to one']])
    const second = await shop.hookloop(['deny', ids[1]!, '--resume', '-q'])
    assert.deepEqual([second.code, second.stdout], [0, 'It says: live on one / The call was denied.\n'])
  })
})

describe('hookloop approvals', { concurrency: 2 }, () => {
  test('shows all of what is asked for, and who asks where', async () => {
    const { shop, id } = await asked('deploy pro\u202Educ')
    const [shown, json] = await Promise.all([shop.hookloop(['approvals']), shop.hookloop(['approvals', '--json'])])
    const [first] = JSON.parse(json.stdout) as (PendingApproval & { shortId: string })[]
    assert.equal(
      shown.stdout,
      `${id}  deploy {\n    "to": "pro\\u{202e}duc"\n  }\n  Deploy to pro\\u{202e}duc? (asked by careful in ship)\n`,
    )
    assert.deepEqual([first?.shortId, first?.session, first?.toolCall.name], [id, 'ship', 'deploy'])
  })

  test('says when there is nothing to answer', async () => {
    const shop = new Workshop()
    const [shown, json] = await Promise.all([shop.hookloop(['approvals']), shop.hookloop(['approvals', '--json'])])
    assert.deepEqual([shown.code, shown.stdout, shown.stderr], [0, '', 'No pending approvals.\n'])
    assert.deepEqual([json.code, json.stdout], [0, '[]\n'])
  })

  test('leaves out a question whose id does not stand for what it shows, and it cannot be answered', async () => {
    const { shop, id } = await asked('deploy production')
    const database = new DatabaseSync(shop.path('data/hookloop/sessions.db'))
    database.exec(`UPDATE sessions SET head = replace(head, '"production"', '"nowhere"')`)
    database.close()
    const [shown, approved] = [await shop.hookloop(['approvals']), await shop.hookloop(['approve', id])]
    assert.deepEqual([shown.stdout, approved.code], ['', 2])
  })
})

describe('an answer', { concurrency: 2 }, () => {
  test('is taken once', async () => {
    const { shop, id } = await asked('deploy production')
    const ends = await Promise.all([shop.hookloop(['approve', id]), shop.hookloop(['approve', id])])
    const codes = ends.map(({ code }) => code!).toSorted((a, b) => a - b)
    assert.ok(codes[0] === 0 && codes[1] !== 0, codes.join())
    const late = await shop.hookloop(['deny', id])
    assert.deepEqual([late.code, late.stderr.includes('It may have been answered already.')], [2, true])
  })

  test('needs an id that is no guess, fits one question, and is not a session', async () => {
    const { shop, id } = await asked('deploy production')
    const wrong = [id.slice(0, 3), 'ffffffff', 'ship', '../../etc', '']
    const ends = await Promise.all(wrong.map((each) => shop.hookloop(['approve', each])))
    assert.deepEqual(
      ends.map(({ code }) => code),
      wrong.map(() => 2),
    )
    assert.match(ends[0]!.stderr, /Type at least 4 characters/)
  })

  test('to the same question in two sessions says which one', async () => {
    const { shop, id } = await asked('deploy production')
    await shop.hookloop(['run', 'deploy production', ...agent, '--session', 'other'])
    const { code, stderr } = await shop.hookloop(['approve', id])
    assert.equal(code, 2)
    const [whole] = /\S+#\w+/.exec(stderr) ?? []
    assert.match(stderr, /matches 2 approvals\. Use one of these ids:\n {2}\S+#\w+\n {2}\S+#\w+\n$/)
    assert.equal((await shop.hookloop(['approve', whole!])).code, 0)
  })

  test('with arguments that are none is refused before anything is kept', async () => {
    const { shop, id } = await asked('deploy production')
    const ends = [
      await shop.hookloop(['approve', id, '--args', '[1]']),
      await shop.hookloop(['approve', id, '--args', '{']),
    ]
    assert.deepEqual(
      ends.map(({ code, stderr }) => [code, stderr.startsWith('error: --args must be a JSON object')]),
      [
        [2, true],
        [2, true],
      ],
    )
    assert.equal((await shop.hookloop(['approve', id])).code, 0)
  })

  test('is printed as JSON, with what comes of it', async () => {
    const { shop, id } = await asked('deploy production')
    const { stdout } = await shop.hookloop(['approve', id, '--by', 'jane', '--resume', '--json'])
    const lines = stdout.trimEnd().split('\n')
    const [first, last] = [lines[0]!, lines.at(-1)!].map((line) => JSON.parse(line) as { [key: string]: unknown })
    assert.deepEqual([first!['type'], first!['answer'], first!['session']], ['answered', 'allow', 'ship'])
    assert.deepEqual([last!['type'], last!['status']], ['result', 'completed'])
    const kept = await shop.hookloop(['export', 'ship'])
    assert.match(kept.stdout, /"type":"answer",.*"by":"jane"/)
  })
})
