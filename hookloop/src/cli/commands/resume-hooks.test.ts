import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonObject } from '../../values/json.ts'
import type { Started } from '../cli.fixture.ts'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

// The hooks of a project in a run that one process starts, another answers, and a third resumes.

/** Its model calls the tools that the input names, in one step, and then repeats their results. */
const agentCode = `import { appendFileSync } from 'node:fs'
import { tool } from 'hookloop'
import { bash } from 'hookloop/bash'
import { subagents } from 'hookloop/subagents'
import { scriptedModel } from 'hookloop/testing'
const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, onUnknownOutcome: 'ask', execute: async () => {
  appendFileSync(process.env.MARKS, 'worked\\n')
  if (process.env.HANGS) await new Promise((resolve) => setTimeout(resolve, 60_000))
  return 'done'
} })
const model = scriptedModel(({ messages }) => {
  const isSaid = ({ role, content }) => role !== 'user' || !content[0].text.startsWith('[')
  const last = messages.findLast(isSaid) // what hooks add when a run is resumed follows the results of its step
  if (last.role === 'tool') return 'It says: ' + last.content.map(({ output }) => JSON.stringify(output)).join(' / ')
  const said = messages.filter(({ role }) => role === 'user').flatMap(({ content }) => content.map(({ text }) => text))
  const text = said.findLast((each) => !each.startsWith('['))
  if (text.startsWith('{')) return { toolCalls: JSON.parse(text) && [JSON.parse(text)] }
  return 'I heard ' + said.join(' | ')
})
const helper = { description: 'Helps.', instructions: 'You help.', model }
export default { name: 'worker', model, use: [work, await bash({ sandbox: 'off', allow: ['echo *', 'printenv *'] }), subagents({ agents: { helper } })] }
`

const command = (line: string): JsonObject => ({ type: 'command', command: line, timeout: 60 })

class Resumed extends ProjectWithHooks {
  constructor(hooks: { readonly [event: string]: string }) {
    super()
    writeFileSync(this.agent, agentCode)
    const groups = Object.entries(hooks).map(([event, line]) => [event, [{ hooks: [command(line)] }]])
    this.write('.claude/settings.json', { hooks: Object.fromEntries(groups) as JsonObject })
  }

  /** A hook that leaves a mark with fields of its event, and then does this. */
  static seeing(fields: string, then = 'true'): string {
    const script = `const e = JSON.parse(require('fs').readFileSync(0, 'utf8')); require('fs').appendFileSync(process.env.MARKS, [${fields}].join(' ') + '\\n')`
    return `"${process.execPath}" -e "${script.replaceAll('"', '\\"')}"; ${then}`
  }

  begin(call: JsonObject, env: NodeJS.ProcessEnv = {}) {
    return this.start(['run', JSON.stringify(call), '--agent', this.agent, '--session', 's'], { env }).ended
  }

  async question(): Promise<{ readonly id: string }> {
    const { stdout } = await this.hookloop(['approvals', '--json'])
    return (JSON.parse(stdout) as { readonly id: string }[])[0]!
  }
}

/** Until its tool is at work. */
async function working(project: ProjectWithHooks, { ended }: Started): Promise<void> {
  let isOver = false
  void ended.then(() => (isOver = true))
  while (!project.marked().includes('worked')) {
    if (isOver) assert.fail((await ended).stderr)
    await sleep(5)
  }
}

const asks = `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"Sure?"}}'`
const exporting = 'echo "export WORD=from-$(id -u)" >> "$CLAUDE_ENV_FILE"; echo "The moon is full."'
const printing = { name: 'bash', args: { command: 'printenv WORD' } }

describe('a session that is resumed', { concurrency: 2 }, () => {
  test('after an answer: SessionStart fires once in that process, and its variables are set', async () => {
    const project = new Resumed({
      SessionStart: Resumed.seeing(`'start', e.source`, exporting),
      PreToolUse: `cat > /dev/null; ${asks}`,
      SessionEnd: Resumed.seeing(`'end', e.reason`),
    })
    await project.trust('--yes')
    const started = await project.begin(printing)
    assert.deepEqual([started.code, project.marked()], [4, ['start startup']], started.stderr)
    const { id } = await project.question()
    assert.equal((await project.hookloop(['approve', id])).code, 0)
    assert.deepEqual(project.marked(), ['start startup'])
    const resumed = await project.hookloop(['resume', 's'])
    assert.equal(resumed.code, 0, resumed.stderr)
    assert.match(resumed.stdout, /from-\d/)
    assert.deepEqual(project.marked(), ['start startup', 'start resume', 'end other'])
    const said = await project.hookloop(['chat', '--session', 's', '--quiet'], { input: 'hello\n' })
    assert.equal(said.stdout.match(/The moon is full/g)?.length, 3, said.stdout) // at the beginning, when the open step closed, and now
  })
})

describe('approvals that another process answers', { concurrency: 2 }, () => {
  const deciding = (behavior: string): string =>
    `echo '{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":${behavior}}}'`

  for (const [what, behavior, code, worked] of [
    ['a yes', '{"behavior":"allow"}', 0, true],
    ['a no', '{"behavior":"deny","message":"Never."}', 0, false],
  ] as const) {
    test(`PermissionRequest answers with ${what} a call that a crash interrupted, and gets the session id`, async () => {
      const project = new Resumed({
        PreToolUse: 'cat > /dev/null',
        PermissionRequest: Resumed.seeing(
          `'asked', e.tool_name, e.session_id, e.transcript_path !== undefined`,
          deciding(behavior),
        ),
      })
      await project.trust('--yes')
      const args = ['run', JSON.stringify({ name: 'work', args: {} }), '--agent', project.agent, '--session', 's']
      const running = project.start(args, { env: { HANGS: '1' } })
      await working(project, running)
      running.kill('SIGKILL')
      await running.ended
      const ended = await project.hookloop(['resume', 's'])
      assert.equal(ended.code, code, ended.stderr)
      assert.deepEqual(project.marked(), ['worked', 'asked work s true', ...(worked ? ['worked'] : [])])
    })
  }
})
