import assert from 'node:assert/strict'
import { dirname } from 'node:path'
import { describe, test } from 'node:test'
import { HookProject, saidOf } from './hook-project.fixture.ts'
import { publicScripts } from './public-scripts.fixture.ts'

const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH']}` }

for (const { title, event, file, mode, source, command, cases } of publicScripts) {
  describe(title, { concurrency: 2 }, () => {
    for (const [what, input, gives] of cases) {
      test(what, async () => {
        using project = new HookProject()
        const path = project.write(`.claude/hooks/${file}`, source, mode)
        project.handlers(event, [{ type: 'command', command: command.replaceAll('FILE', `"${path}"`) }])
        assert.deepEqual(saidOf(await project.fire(event, input, { env })), gives)
      })
    }
  })
}
