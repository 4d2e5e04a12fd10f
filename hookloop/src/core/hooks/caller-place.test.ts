import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { explain } from '../explain/explain.ts'
import { explanation } from '../explain/explanation.ts'
import { tool } from '../agent/tool.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import * as library from './hook.ts'

type Define = (hooks: typeof library) => library.Hook

/** A module of a user that defines a hook. */
async function defineIn(folder: string, lines: readonly string[]): Promise<library.Hook> {
  const file = join(folder, 'agent.mjs')
  writeFileSync(file, `export const define = ({ hook, guard, observe }) =>\n${lines.join('\n')}\n`)
  const { define } = (await import(pathToFileURL(file).href)) as { readonly define: Define }
  return define(library)
}

function folderOfUser(): string {
  return mkdtempSync(join(tmpdir(), 'place-'))
}

const echo = tool({ name: 'echo', description: 'Repeats.', input: { type: 'object' }, execute: (args) => args })

async function runWith(hook: library.Hook) {
  const model = scriptedModel([{ toolCalls: [{ name: 'echo' }] }, 'done'])
  const run = await createAgent({ model, use: [echo, hook] }).run('go')
  return { run, requests: model.requests }
}

test('a hook knows the file and line where it is defined, without the absolute path', async () => {
  const folder = folderOfUser()
  const name = folder.slice(folder.lastIndexOf('/') + 1)
  const spread = await defineIn(folder, ['', '  guard(', `    'beforeToolUse',`, '    (ctx) => ctx,', '  )'])
  assert.equal(spread.definedAt(), `${name}/agent.mjs:3`)
  for (const kind of ['hook', 'guard', 'observe']) {
    assert.equal(
      (await defineIn(folderOfUser(), [`${kind}('afterStep', (ctx) => ctx)`])).definedAt()?.split(':')[1],
      '2',
    )
  }
})

test('hooks of the library itself have no place', () => {
  for (const each of guards({ maxSteps: 1 }).hooks!) assert.equal(each.definedAt(), undefined)
})

test('the ledger, explain and events name the file and line of the hook that blocked, and the model does not get them', async () => {
  const noEcho = await defineIn(folderOfUser(), [
    `guard('beforeToolUse', (ctx) => ctx.block('No.'), { name: 'no-echo' })`,
  ])
  const { run, requests } = await runWith(noEcho)
  const place = noEcho.definedAt()!
  assert.match(place, /agent\.mjs:2$/)
  assert.equal(run.ledger.find(({ hook }) => hook === 'no-echo')?.definedAt, place)
  assert.equal(explanation(run).blocked[0]!.definedAt, place)
  assert.ok(explain(run).includes(`by no-echo (${place}): No.`))
  assert.ok(!JSON.stringify(requests).includes('agent.mjs'))
  assert.ok(!JSON.stringify(run.state).includes('agent.mjs'))
})
