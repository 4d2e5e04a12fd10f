// A skill is a folder with instructions. The model sees its name, loads it, and may then use only the tools that it
// allows. Commands in its text run because this exact text is trusted by hash.
import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent, tool } from 'hookloop'
import { skills, findSkills } from 'hookloop/skills'
import { scriptedModel } from 'hookloop/testing'

const cwd = await mkdtemp(join(tmpdir(), 'skills-'))
const folder = join(cwd, '.claude/skills/changelog')
await mkdir(join(folder, 'references'), { recursive: true })
await writeFile(join(folder, 'references/tone.md'), 'Short sentences. No marketing.')
await writeFile(
  join(folder, 'SKILL.md'),
  `---
name: changelog
description: Writes an entry of the changelog. Use it for releases.
allowed-tools: write_file
argument-hint: version
---
Write the entry for version $0, in the tone of references/tone.md.
Released in: !\`echo 2026\`
`,
)

const write = tool({
  name: 'write_file',
  description: 'Writes a file.',
  input: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  execute: ({ path }) => ({ wrote: path }),
})
const publish = tool({
  name: 'publish',
  description: 'Publishes the package.',
  input: { type: 'object' },
  execute: () => 'published',
})

const call = (name: string, args = {}) => ({ toolCalls: [{ name, args }] })
const agent = createAgent({
  model: scriptedModel([
    call('load_skill', { skill_name: 'changelog', arguments: '1.2.0' }),
    call('read_skill_resource', { skill_name: 'changelog', path: 'references/tone.md' }),
    call('publish'),
    call('write_file', { path: 'CHANGELOG.md' }),
    'The entry for 1.2.0 is written.',
  ]),
  use: [skills({ cwd, trust: findSkills({ cwd }).skills.map(({ hash }) => hash) }), write, publish],
})

for await (const event of agent.stream('Write the changelog of 1.2.0 and publish it.')) {
  if (event.type === 'toolFinished') {
    console.log(`${event.call.name}: ${event.execution.status}`)
    console.log(event.execution.output, '\n')
  }
  if (event.type === 'finished') console.log(event.record.status)
}
const { notes } = agent.describe()
console.log(notes.find((note) => note.startsWith('Skills')))
await rm(cwd, { recursive: true })
