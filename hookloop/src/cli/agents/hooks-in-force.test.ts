import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

/** How each command runs an agent with the input `work x`. */
const commands: { readonly [command: string]: (project: ProjectWithHooks, agent: readonly string[]) => Promise<void> } =
  {
    run: async (project, agent) => void (await project.hookloop(['run', 'work x', ...agent])),
    chat: async (project, agent) => void (await project.hookloop(['chat', ...agent], { input: 'work x\n' })),
    async resume(project, agent) {
      await project.hookloop(['run', 'hello', ...agent, '--session', 's'])
      await project.hookloop(['rewind', 's', '--message', 'work x'])
      await project.hookloop(['resume', 's', ...agent])
    },
    async serve(project, agent) {
      const server = project.start(['serve', ...agent, '--port', '0', '--json'])
      const { origin, hash } = new URL((JSON.parse(await server.firstLine()) as { readonly url: string }).url)
      const response = await fetch(`${origin}/api/chat`, {
        method: 'POST',
        headers: { authorization: `Bearer ${hash.replace('#token=', '')}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          id: crypto.randomUUID(),
          trigger: 'submit-message',
          messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'work x' }] }],
        }),
      })
      await response.text()
      server.kill('SIGTERM')
      await server.ended
    },
  }

suite('the hooks in files are the same for every command that runs an agent', () => {
  for (const [command, act] of Object.entries(commands)) {
    test(command, async () => {
      const project = new ProjectWithHooks()
      const judged = `cat > /dev/null; ${project.mark('judged')}`
      project.hooks({ name: 'frozen', on: 'beforeToolUse', mode: 'guard', shell: `${judged}; exit 2` })
      const handler = { type: 'command', command: `cat > /dev/null; ${project.mark('denied')}` }
      project.write('.claude/settings.json', { hooks: { PermissionDenied: [{ hooks: [handler] }] } })
      await act(project, ['--agent', project.agent])
      assert.deepEqual(project.marked(), ['worked x'], 'untrusted hooks do not run')
      await project.trust('--yes')
      await act(project, ['--agent', project.agent])
      assert.deepEqual(project.marked(), ['worked x', 'judged', 'denied'])
    })
  }
})
