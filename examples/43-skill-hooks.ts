// A skill brings its own guard: hooks in the front matter of its SKILL.md. They apply from the moment the skill is
// loaded and need trust like every file of a project.
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { createAgent, tool } from 'hookloop'
import { hookFilesOf, projectHooks, TrustStore } from 'hookloop/hook-files'
import { skills } from 'hookloop/skills'
import { scriptedModel } from 'hookloop/testing'
import * as z from 'zod'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-example-')))
const dir = join(folder, 'project')
const skill = join(dir, '.hookloop', 'skills', 'deploy')
mkdirSync(skill, { recursive: true })
writeFileSync(
  join(skill, 'SKILL.md'),
  `---
name: deploy
description: Use it when something is to be deployed.
hookloop:
  hooks:
    - name: staging-first
      on: beforeToolUse
      mode: guard
      tool: bash
      shell: ./staging-first.sh
---
Deploy $ARGUMENTS, with ./deploy.
`,
)
// A command of a skill runs in the folder of the skill.
const script = join(skill, 'staging-first.sh')
writeFileSync(script, `#!/bin/sh\nif grep -q production; then echo 'Staging comes first.' >&2; exit 2; fi\n`)
chmodSync(script, 0o755)

const bash = tool({
  name: 'bash',
  description: 'Runs a command.',
  input: z.object({ command: z.string() }),
  execute: ({ command }) => `ran ${command}`,
})

const trust = new TrustStore(join(folder, 'trust.json'))
const files = hookFilesOf(dir)
trust.trust(files) // what `hookloop trust` does once you have looked at them
console.log(`trusted: ${files.map(({ path }) => relative(dir, path)).join(', ')}`)

const call = (name: string, args: Record<string, string>) => ({ toolCalls: [{ name, args }] })
const agent = createAgent({
  model: scriptedModel([
    call('bash', { command: './deploy production' }),
    call('load_skill', { skill_name: 'deploy', arguments: 'the shop' }),
    call('bash', { command: './deploy production' }),
    call('bash', { command: './deploy staging' }),
    'It is on staging.',
  ]),
  use: [bash, skills({ cwd: dir }), projectHooks({ dir, home: false, trust })],
})

for await (const event of agent.stream('Deploy the shop.')) {
  if (event.type !== 'toolFinished') continue
  const { execution } = event
  const said = event.call.name === 'bash' ? (execution.output as string) : 'the skill is loaded'
  console.log(`${execution.status.padEnd(8)} ${said}`)
}

rmSync(folder, { recursive: true })
