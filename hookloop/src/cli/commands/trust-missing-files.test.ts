import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

// A trusted guard does not disappear silently if its file is emptied, broken, or replaced by a folder.

const says = 'cat > /dev/null; echo Never. >&2; exit 2'
const files = {
  '.claude/settings.json': { hooks: { PreToolUse: [{ hooks: [{ type: 'command', command: says }] }] } },
  '.hookloop/hooks.json': { hooks: [{ name: 'never', on: 'beforeToolUse', mode: 'guard', shell: says }] },
}

const instead: { readonly [what: string]: (file: string) => void } = {
  'nothing in it': (file) => writeFileSync(file, '{}'),
  'half of it': (file) => writeFileSync(file, '{'),
  'a switch that turns hooks off': (file) => writeFileSync(file, '{"disableAllHooks":true}'),
  'a folder': (file) => mkdirSync(file),
  'a pipe': (file) => void execFileSync('mkfifo', [file]),
  'a link to nowhere': (file) => symlinkSync('nowhere', file),
  'a link to itself': (file) => symlinkSync('settings.json', file),
  'a link to a file that is not trusted': (file) => {
    writeFileSync(join(dirname(file), 'other.json'), '{}')
    symlinkSync('other.json', file)
  },
}

describe('trusted hook files that were replaced by', { concurrency: 2 }, () => {
  for (const [path, content] of Object.entries(files)) {
    test(`other content in ${path}: no run starts, except with --no-hooks`, async () => {
      const project = new ProjectWithHooks()
      const file = project.write(path, content)
      await project.trust('--yes')
      assert.match((await project.run('work x', '--no-store')).stdout, /Never\./)
      for (const [what, put] of Object.entries(instead)) {
        rmSync(file, { recursive: true, force: true })
        put(file)
        const { code, stderr } = await project.run('work x', '--no-store')
        assert.deepEqual([what, code, project.marked()], [what, 2, []], stderr)
        assert.match(stderr, /changed after it was trusted.* trust.*--no-hooks/)
      }
      const meant = await project.run('work y', '--no-store', '--no-hooks')
      assert.deepEqual([meant.code, project.marked()], [0, ['worked y']], meant.stderr)
    })
  }

  test('a folder: it can be neither listed nor trusted, and every command reports it', async () => {
    for (const path of Object.keys(files)) {
      const project = new ProjectWithHooks()
      const file = project.write(path, files[path as keyof typeof files])
      await project.trust('--yes')
      rmSync(file)
      mkdirSync(file)
      const [listed, trusted, examined] = await Promise.all([
        project.hookloop(['hooks', 'list']),
        project.trust('--yes'),
        project.hookloop(['hooks', 'list', '--check', '--json']),
      ])
      assert.deepEqual([listed.code, trusted.code !== 0, examined.code], [1, true, 1])
      for (const words of [listed.stderr, trusted.stderr, examined.stdout])
        assert.match(words, /(?:settings|hooks)\.json[^\n]* cannot be read/)
    }
  })

  test('an empty file: it can be reviewed and trusted, and then the hooks are removed', async () => {
    const project = new ProjectWithHooks()
    const file = project.write('.claude/settings.json', files['.claude/settings.json'])
    await project.trust('--yes')
    writeFileSync(file, '{}')
    const looked = await project.trust()
    assert.match(looked.stdout, /settings\.json .* changed since it was trusted\n {4}- .*\n/s)
    assert.notEqual(looked.code, 0) // there is no terminal
    assert.equal((await project.trust('--yes')).code, 0)
    const { code } = await project.run('work x', '--no-store')
    assert.deepEqual([code, project.marked()], [0, ['worked x']])
  })

  test('a folder, for hooks of the user: no run starts', async () => {
    const project = new ProjectWithHooks()
    mkdirSync(join(project.home, '.config', 'hookloop', 'hooks.json'), { recursive: true })
    const { code, stderr } = await project.run('work x', '--no-store')
    assert.deepEqual([code, project.marked()], [2, []])
    assert.match(stderr, /hooks\.json: it cannot be read/)
  })
})
