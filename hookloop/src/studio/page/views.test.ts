import assert from 'node:assert/strict'
import { suite } from 'node:test'
import { eventually, pageTest } from '../../../../scripts/browser/browser.fixture.ts'
import { fakeStudio } from './fake-studio.fixture.ts'
import { exampleRun, question } from './run-data.fixture.ts'
import { editQuestion } from './studio-data.fixture.ts'

const RUN = `/run/${question.session}/1/decisions`

suite('what if', () => {
  pageTest(
    'switching a hook off shows which decisions change and where a live run leaves the record',
    async ({ open, screenshot }) => {
      await using studio = await fakeStudio()
      const page = await open(studio.url(RUN), { width: 1180, height: 680 })
      await page.getByRole('button', { name: 'What if' }).click()
      const panel = page.getByRole('complementary', { name: 'What if' })
      await panel.getByLabel('no-push').uncheck()
      await panel.getByText('1 of 33 decisions would change').waitFor()
      await panel.getByText('0 calls made, 0 tools run').waitFor()
      await panel.getByText('A live run leaves the record at step 2: the call would run').waitFor()
      await page.locator('.row.marked').getByText('⇒ the call would run ◄ leaves the record').waitFor()
      await panel.getByLabel('stricter.ts').check()
      await panel.getByText('2 of 33 decisions would change').waitFor()
      const requests = studio.sent.filter(({ name }) => name === 'whatIf').map(({ request }) => request)
      assert.deepEqual(requests, [
        { session: question.session, run: 1, without: ['no-push'], add: [] },
        { session: question.session, run: 1, without: ['no-push'], add: ['stricter.ts'] },
      ])
      await screenshot(page, 'studio-what-if')
      await panel.getByRole('button', { name: 'Run it live as a fork' }).click()
      await page.waitForURL(/#\/run\/forked\//)
    },
  )

  pageTest('a run that cannot be judged again says why', async ({ open }) => {
    const run = { ...exampleRun.run, whatIf: 'The agent "release-bot" is not known. Start with --agent.' }
    await using studio = await fakeStudio({ run: { ...exampleRun, run } })
    const page = await open(studio.url(RUN))
    await page.getByRole('button', { name: 'What if' }).click()
    await page.getByText('The agent "release-bot" is not known. Start with --agent.').waitFor()
  })
})

suite('the inbox', () => {
  pageTest('shows the exact arguments, a diff for edits, the hash and who asks', async ({ open, screenshot }) => {
    await using studio = await fakeStudio()
    const page = await open(studio.url('/inbox'))
    const first = page.getByRole('article', { name: 'bash: Deletes files that are not in git.' })
    for (const text of ['rm -r build/ old-notes.md', 'packages/site', '7883bbd3bd35', 'ask-rm'])
      await first.getByText(text).first().waitFor()
    const second = page.getByRole('article', { name: 'edit_file' })
    await eventually(
      () => second.locator('.del').allInnerTexts(),
      ['export function parse(text: string) {', '  return build(tokens)'],
    )
    await eventually(
      () => second.locator('.add').allInnerTexts(),
      ['export function parse(text: string): Tree {', '  return build(tokens, { strict: true })'],
    )
    await screenshot(page, 'studio-inbox')
  })

  pageTest(
    'an answer is sent with the hash of what was shown: allowed, edited or blocked with a reason',
    async ({ open }) => {
      await using studio = await fakeStudio({ questions: [question, editQuestion, { ...question, id: 'third' }] })
      const page = await open(studio.url('/inbox'))
      const articles = page.getByRole('article')
      await articles.nth(0).getByRole('button', { name: 'Allow exactly this' }).click()
      await articles.nth(0).getByText('Allowed.').waitFor()
      await page.getByRole('navigation').getByLabel('2 waiting').waitFor()

      await articles.nth(2).getByRole('button', { name: 'Block…' }).click()
      await page.keyboard.type('Move it to the archive instead.')
      await articles.nth(2).getByRole('button', { name: 'Block', exact: true }).click()
      await articles.nth(2).getByText('Blocked.').waitFor()

      const second = articles.nth(1)
      await second.getByRole('button', { name: 'Edit…' }).click()
      await second.getByRole('textbox').fill('{')
      await eventually(() => second.getByRole('button', { name: 'Allow with these arguments' }).isDisabled(), true)
      await second.getByRole('textbox').fill('{ "path": "src/other.ts" }')
      await second.getByLabel('resume here').uncheck()
      await second.getByRole('button', { name: 'Allow with these arguments' }).click()
      await second.getByText('Allowed with your arguments.').waitFor()

      const common = (each: typeof question, resume = true) => ({
        session: each.session,
        question: each.id,
        hash: each.hash,
        resume,
      })
      assert.deepEqual(
        studio.sent.filter(({ name }) => name === 'answer').map(({ request }) => request),
        [
          { ...common(question), answer: { type: 'allow' } },
          {
            ...common({ ...question, id: 'third' }),
            answer: { type: 'block', reason: 'Move it to the archive instead.' },
          },
          { ...common(editQuestion, false), answer: { type: 'edit', args: { path: 'src/other.ts' } } },
        ],
      )
    },
  )

  pageTest('an answer that the studio rejects is not shown as given', async ({ open, takeProblems }) => {
    const answer = () => {
      throw new Error('HASH_MISMATCH')
    }
    await using studio = await fakeStudio({ calls: { answer } })
    const page = await open(studio.url('/inbox'))
    const first = page.getByRole('article').first()
    await first.getByRole('button', { name: 'Allow exactly this' }).click()
    await first.getByRole('alert').getByText('The studio says HASH_MISMATCH.').waitFor()
    await eventually(() => first.getByText('Allowed.').count(), 0)
    assert.match(takeProblems().join(), /409/)
  })

  pageTest('a question can be answered in the row of the run that waits', async ({ open }) => {
    await using studio = await fakeStudio()
    const page = await open(studio.url(`${RUN}/15`))
    await page
      .getByRole('complementary', { name: 'Detail' })
      .getByRole('button', { name: 'Allow exactly this' })
      .click()
    await page.getByText('Allowed.').first().waitFor()
  })
})

suite('the view of hooks', () => {
  pageTest('shows files, trust, what each hook did, and what shadows would have done', async ({ open, screenshot }) => {
    await using studio = await fakeStudio()
    const page = await open(studio.url('/hooks'))
    await page.getByText('no-ls would have blocked 14').waitFor()
    await page.getByRole('row', { name: 'format' }).getByText('changed', { exact: true }).waitFor()
    await page.getByText('The file has changed since it was trusted.').waitFor()
    const counts = page.getByRole('row', { name: 'ask-rm' }).last()
    await eventually(
      async () => (await counts.locator('td.number').allInnerTexts()).slice(0, 5),
      ['0', '9', '0', '0', '1'],
    )
    await screenshot(page, 'studio-hooks')
    await counts.getByRole('link').click()
    await page.waitForURL(/#\/run\/clean-up-7f3a\/1\//)
  })
})

suite('the view of time and cost', () => {
  pageTest(
    'shows limits, shares of time, money per model, and a waterfall that leads to the rows',
    async ({ open, screenshot }) => {
      await using studio = await fakeStudio()
      const page = await open(studio.url(`/run/${question.session}/1/time`))
      for (const text of ['27.7K of 32.8K', 'tools 13.8 s 53%', 'hooks 412 ms 2%'])
        await page.getByRole('listitem').filter({ hasText: text }).first().waitFor()
      await eventually(
        () => page.getByRole('row', { name: 'claude-haiku-5' }).first().getByRole('cell').allInnerTexts(),
        ['claude-haiku-5', '1', '2,600', '140', '$0.0045'],
      )
      const bars = page.getByRole('grid', { name: 'Waterfall' }).locator('rect')
      await eventually(() => bars.count(), exampleRun.time.spans.length)
      await screenshot(page, 'studio-time')
      await page.getByRole('button', { name: 'tools: bash, 8.4 s' }).click()
      await page.locator('#r11.active').waitFor()
    },
  )
})
