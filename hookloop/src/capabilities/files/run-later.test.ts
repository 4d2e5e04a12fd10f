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
  '.gemini/settings.json .codex/config.toml .windsurf/hooks.json .huskyrc.js .gradle/init.gradle bunfig.toml .nvim.lua sub/.dir-locals.el .config/fish/config.fish .inputrc .irbrc .Rprofile .hg/hgrc sitecustomize.py pip.conf .config/mise/config.toml ' +
  '.devcontainer.json .gitpod.yml .replit .codesandbox/tasks.json .fleet/run.json sub/.local.vimrc .git-hooks/pre_commit/x.rb .jj/repo/config.toml .svn/config tools/bazel .bazeliskrc .jvmopts .terraform/providers/x ' +
  'env/lib/python3.12/site-packages/x.pth .continue/config.json opencode.json .kiro/hooks/x.json .iex.exs .ocamlinit .ipython/profile_default/startup/x.py .julia/config/startup.jl .pythonrc .Renviron .xprofile .pam_environment ' +
  '.direnvrc .config/git/config .config/nvim/init.lua .config/systemd/user/x.service .config/autostart/x.desktop .config/environment.d/x.conf .aws/config .kube/config .gnupg/gpg.conf .docker/config.json .my.cnf'

/** How a call ends that writes a file, without an approver. */
async function written(path: string): Promise<string> {
  const call = { toolCalls: [{ name: 'write_file', args: { path, content: 'x' } }] }
  const run = await createAgent({ model: scriptedModel([call, 'Done.']), use: [files({ root })] }).run('Go.')
  const { status, by } = run.state.execution!.steps.at(0)!.toolExecutions[0]!
  return by === undefined ? status : `${status} by ${by}`
}

test('a file that other tools run is not written', async () => {
  for (const path of later.split(' '))
    assert.match(await written(path), /^blocked by files\.(?:protect|confine)$/, path)
})

const continuous =
  'package.json .github/workflows/x.yml .gitlab-ci.yml azure-pipelines.yml bitbucket-pipelines.yml .travis.yml .drone.yml .woodpecker/x.yml .buildkite/pipeline.yml .forgejo/workflows/x.yml .gitea/workflows/x.yml .cirrus.yml appveyor.yml'
test('a file that a server or an installation runs needs approval', async () => {
  for (const path of continuous.split(' ')) assert.equal(await written(path), 'blocked by approval', path)
})

// Build files and configuration of tests are code like any other: they run when the user builds or tests.
const ordinary =
  'Makefile Justfile tox.ini conftest.py setup.py pyproject.toml build.rs build.gradle gradlew Dockerfile compose.yaml eslint.config.js jest.config.js .mocharc.js .rspec .gitattributes .gitignore .tool-versions AGENTS.md .docker/php/Dockerfile docs/.config/x model.pth'
test('a file that is part of the work is written', async () => {
  for (const path of ordinary.split(' ')) assert.equal(await written(path), 'ok', path)
})
