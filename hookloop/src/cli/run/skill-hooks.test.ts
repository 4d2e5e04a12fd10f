import assert from 'node:assert/strict'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

// Hooks in the front matter of a skill.

const agentCode = `import { appendFileSync } from 'node:fs'
import { tool } from 'hookloop'
import { skills } from 'hookloop/skills'
import { scriptedModel } from 'hookloop/testing'
const execute = () => { appendFileSync(process.env.MARKS, 'worked\\n'); return 'done' }
const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute })
const model = scriptedModel(({ messages }) => (messages.at(-1).role === 'tool' ? 'Done.' : { toolCalls: [{ name: 'work' }] }))
export default { model, use: [work, skills({ user: true })] }
`

function projectWithSkill(): ProjectWithHooks {
  const project = new ProjectWithHooks()
  writeFileSync(project.agent, agentCode)
  project.write(
    '.hookloop/skills/deploy/judge.sh',
    `#!/bin/sh\ncat > /dev/null\n${project.mark('judged')}\nexit 2\n`,
    0o755,
  )
  const hooks = '  hooks:\n    - { name: judge, on: beforeToolUse, mode: guard, tool: work, shell: ./judge.sh }'
  const head = `name: deploy\ndescription: Deploys.\nhookloop:\n${hooks}`
  project.write('.hookloop/skills/deploy/SKILL.md', `---\n${head}\n---\nDeploy it.\n`)
  return project
}

describe('hooks of a skill', { concurrency: 2 }, () => {
  test('run when they are trusted and the skill is active, in every process of the session', async () => {
    const project = projectWithSkill()
    const untrusted = await project.run('/deploy', '--session', 'before')
    assert.match(untrusted.stderr, /not trusted and do not run: .hookloop\/skills\/deploy\/SKILL\.md/)
    assert.deepEqual(project.marked(), ['worked'])
    await project.trust('--yes')
    await project.run('hello', '--session', 'a')
    await project.start(['run', '/deploy', '--agent', project.agent, '--session', 'a']).ended
    await project.run('hello', '--session', 'a')
    assert.deepEqual(project.marked(), ['worked', 'worked', 'judged', 'judged'])
  })

  test('are listed, shown by trust, checked, and run by hooks test', async () => {
    const project = projectWithSkill()
    const listed = await project.hookloop(['hooks', 'list', '--json'])
    const [hook] = (JSON.parse(listed.stdout) as { hooks: { kind: string; owner: string; source: string }[] }).hooks
    assert.deepEqual([hook?.kind, hook?.owner], ['skill', 'deploy'])
    assert.match(hook!.source, /SKILL\.md:4$/)
    const shown = await project.trust('--yes')
    assert.match(
      shown.stdout,
      /guard "judge" on beforeToolUse for work, from the skill deploy\n {4}\.\/judge\.sh\n.*SKILL\.md.*judge\.sh/s,
    )
    const checked = await project.hookloop(['hooks', 'list', '--check'])
    assert.match(checked.stdout, /1 hook was run once, none failed/)
    assert.equal(checked.code, 0)
    const fired = async (event: object): Promise<string> => {
      const { stdout } = await project.hookloop(['hooks', 'test', 'PreToolUse', '--json'], {
        input: JSON.stringify(event),
      })
      return (JSON.parse(stdout) as { decision: string }).decision
    }
    const event = { tool_name: 'work', tool_input: {} }
    assert.deepEqual([await fired(event), await fired({ ...event, skills: ['deploy'] })], ['none', 'deny'])
  })

  test('in the home folder need no trust, unless the project is the home folder', async () => {
    const project = projectWithSkill()
    renameSync(join(project.dir, '.hookloop'), join(project.home, '.hookloop'))
    await project.run('/deploy', '--session', 'a')
    assert.deepEqual(project.marked(), ['judged'])
    const listed = await project.hookloop(['hooks', 'list', '--json'])
    assert.equal((JSON.parse(listed.stdout) as { hooks: { trust: string }[] }).hooks[0]!.trust, 'own')
    const without = await project.hookloop(['hooks', 'list', '--json', '--no-user'])
    assert.deepEqual((JSON.parse(without.stdout) as { hooks: object[] }).hooks, [])
    const args = ['run', '/deploy', '--agent', project.agent, '--session', 'b']
    const athome = await project.hookloop(args, { cwd: project.home })
    assert.match(athome.stderr, /not trusted and do not run: .hookloop\/skills\/deploy\/SKILL\.md/)
    assert.deepEqual(project.marked(), ['judged', 'worked'])
  })
})
