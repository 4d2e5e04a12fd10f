import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { files } from './files.ts'

const root = mkdtempSync(join(tmpdir(), 'hookloop-later-'))
after(() => rmSync(root, { recursive: true, force: true }))

const later =
  '.cargo/config.toml .yarn/releases/yarn.cjs .githooks/pre-commit lefthook.yml .lefthook.yml .pre-commit-config.yaml node_modules/.bin/tsc sub/node_modules/.bin/tsc .envrc .husky/pre-commit ' +
  'lefthook-local.yml .lefthook/pre-commit/lint.sh .pre-commit-config.yml .simple-git-hooks.json .overcommit.yml .bundle/config .mvn/extensions.xml .pnp.cjs sub/.venv/bin/python ' +
  '.gemini/settings.json .codex/config.toml .windsurf/hooks.json .huskyrc.js .gradle/init.gradle bunfig.toml .nvim.lua sub/.dir-locals.el .config/fish/config.fish .inputrc .irbrc .Rprofile .hg/hgrc sitecustomize.py pip.conf .config/mise/config.toml'

for (const path of later.split(' ')) {
  test(`a file that other tools run is not written: ${path}`, async () => {
    const call = { toolCalls: [{ name: 'write_file', args: { path, content: 'x' } }] }
    const run = await createAgent({ model: scriptedModel([call, 'Done.']), use: [files({ root })] }).run('Go.')
    assert.equal(run.state.execution!.steps.at(0)!.toolExecutions[0]!.status, 'blocked')
  })
}
