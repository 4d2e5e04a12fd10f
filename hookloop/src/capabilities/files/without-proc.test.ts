import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs'
import { after, test } from 'node:test'
import type { Tool, ToolRun } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { AgentState } from '../../core/state/agent-state.ts'
import type { JsonObject } from '../../values/json.ts'
import { editFileTool, writeFileTool } from './change-files.ts'
import { filesDefaults } from './options.ts'
import { Workshop } from './files.fixture.ts'
import { OpenFolder } from './open-folder.ts'
import { listDirTool } from './list-dir.ts'
import { pathRules } from './path-rules.ts'
import { readFileTool } from './read-file.ts'
import { replaceFile } from './replace-file.ts'
import { toRoots } from './paths.ts'
import { searchFilesTool } from './search-files.ts'
import type { Workspace } from './workspace.ts'

// On systems without /proc names are looked up by path. These tests do that everywhere.

const shop = new Workshop()
after(() => shop.remove())

const workspace: Workspace = {
  roots: toRoots([shop.inside]),
  lookup: 'path',
  hidden: pathRules('hide', ['hidden']),
  protectedBy: pathRules('protect', filesDefaults.protect),
  askedAbout: pathRules('ask', filesDefaults.ask),
  allowed: pathRules('allow', []),
}
const settings = { ...filesDefaults, readFirst: false, roots: [shop.inside] }
const tools: readonly Tool[] = [
  readFileTool(workspace, settings),
  listDirTool(workspace, settings),
  searchFilesTool(workspace, settings),
  writeFileTool(workspace, settings, new WeakMap()),
  editFileTool(workspace, settings, new WeakMap()),
]
const run: ToolRun = {
  signal: new AbortController().signal,
  idempotencyKey: 'test',
  state: AgentState.create({ agentId: 'test' }),
  progress: () => undefined,
  spend: () => undefined,
  describe: () => createAgent({ model: scriptedModel([]) }).describe(),
}

async function call(name: string, args: JsonObject): Promise<string> {
  const execute = tools.find((each) => each.name === name)!.execute as (args: JsonObject, run: ToolRun) => unknown
  const result = await execute(args, run)
  return typeof result === 'string' ? result : (result as { text: string }).text
}

test('without /proc every tool works', async () => {
  shop.put('hidden/x', 'needle')
  assert.equal(await call('write_file', { path: 'a/b/c.txt', content: 'a needle\n' }), 'Created a/b/c.txt (9 bytes).')
  assert.match(await call('edit_file', { path: 'a/b/c.txt', old_string: 'a', new_string: 'one' }), /\+one needle/)
  assert.equal(await call('read_file', { path: 'a/b/c.txt' }), '     1\tone needle')
  assert.equal(await call('list_dir', { depth: 3 }), 'a/\na/b/\na/b/c.txt\t11')
  assert.equal(await call('search_files', { pattern: 'need' }), 'a/b/c.txt:1: one needle')
})

test('without /proc links that lead out and protected files are refused', async () => {
  symlinkSync('../o', shop.path('link'))
  symlinkSync('../o/new', shop.path('dangling'))
  for (const path of ['link/secret', '../o/secret', 'link'])
    await assert.rejects(call('read_file', { path }), /outside/)
  for (const path of ['link/x', 'dangling']) {
    await assert.rejects(call('write_file', { path, content: '', overwrite: true }), /outside/)
  }
  await assert.rejects(call('write_file', { path: '.git/config', content: '' }), /protected/)
  assert.deepEqual(readdirSync(shop.outside), ['secret'])
})

test('without /proc a folder that was replaced by a link is noticed before the rename', async () => {
  mkdirSync(shop.path('d'))
  const directory = await OpenFolder.open(shop.path('d'), 'path')
  renameSync(shop.path('d'), shop.path('d.real'))
  symlinkSync('../o', shop.path('d'))
  const written = replaceFile(directory, 'f', { content: Buffer.from('x'), before: undefined, signal: run.signal })
  await assert.rejects(written, /moved or replaced in the meantime/)
  await directory.close()
  assert.deepEqual(readdirSync(shop.outside), ['secret'])
  assert.match(readFileSync(shop.secret, 'utf8'), /CANARY/)
})
