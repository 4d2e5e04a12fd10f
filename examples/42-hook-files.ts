// A project declares hooks in .hookloop/hooks.yaml. They run after you have trusted the file and the scripts it names.
// If a script changes later, its guard blocks.
import { appendFileSync, cpSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { createAgent, tool } from 'hookloop'
import { hookFilesOf, projectHooks, TrustStore } from 'hookloop/hook-files'
import { scriptedModel } from 'hookloop/testing'
import * as z from 'zod'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-example-')))
const dir = join(folder, 'project')
cpSync(join(import.meta.dirname, 'hook-files'), dir, { recursive: true })

const bash = tool({
  name: 'bash',
  description: 'Runs a command.',
  input: z.object({ command: z.string() }),
  execute: ({ command }) => `ran ${command}`,
})

/** Stored for the user, outside the project. `hookloop trust` writes to this list. */
const trust = new TrustStore(join(folder, 'trust.json'))

async function go(what: string): Promise<void> {
  const hooks = projectHooks({ dir, home: false, trust })
  const commands = ['git status', 'git push']
  const model = scriptedModel(({ messages }) => {
    const said = messages.filter(({ role }) => role === 'assistant').length
    return commands[said] === undefined ? 'Done.' : { toolCalls: [{ name: 'bash', args: { command: commands[said] } }] }
  })
  const run = await createAgent({ model, use: [bash, hooks] }).run('Release it.')
  console.log(`${what}: ${hooks.hooks?.map(({ name }) => name).join(', ') || 'no hooks'}`)
  for (const { toolExecutions } of run.state.execution!.steps) {
    for (const { status, output } of toolExecutions)
      console.log(`  ${status.padEnd(8)} ${(output as string).replaceAll(folder, '…')}`)
  }
  // The model gets only that the hook failed. The details are for you.
  for (const { message } of run.warnings) console.log(`  warning  ${message.replaceAll(folder, '…')}`)
}

await go('not trusted yet')

const files = hookFilesOf(dir)
console.log(`trusted: ${files.map(({ path }) => relative(dir, path)).join(', ')}`)
trust.trust(files)
await go('trusted')

appendFileSync(join(dir, 'hooks', 'no-push.sh'), 'exit 0\n')
await go('after a change of the script')

rmSync(folder, { recursive: true })
