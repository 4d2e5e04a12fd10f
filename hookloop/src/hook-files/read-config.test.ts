import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, suite, test } from 'node:test'
import { claudeHooks } from './claude/claude-hooks.ts'
import { hookFilesOf, projectHooks } from './files/project-hooks.ts'
import { filesToTrust, listHooks } from './list-hooks.ts'
import { TrustStore } from './trust/trust-store.ts'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-config-')))
after(() => rmSync(folder, { recursive: true, force: true }))

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

const settings = JSON.stringify({ hooks: { PreToolUse: [{ hooks: [{ type: 'command', command: 'exit 2' }] }] } })
const head =
  '---\nname: x\ndescription: d\nhooks:\n  Stop:\n    - hooks:\n        - { type: command, command: x }\n---\n'

suite('a repository cannot run code through a link out of the folder of the project', () => {
  const links: { readonly [link: string]: readonly [target: string, text: string] } = {
    '.claude/settings.json': ['../tools/ci.json', settings],
    '.claude/settings.local.json': ['../tools/ci.json', settings],
    '.claude': ['../tools/settings.json', settings],
    '.claude/skills/x': ['../tools/SKILL.md', head],
    '.claude/agents': ['../tools/x.md', head],
    '.claude/commands/x.md': ['../tools/x.md', head],
  }
  for (const [link, [target, text]] of Object.entries(links)) {
    test(link, () => {
      const dir = join(mkdtempSync(join(folder, 'repository-')), 'app')
      const file = join(dir, target)
      write(file, text)
      mkdirSync(dirname(join(dir, link)), { recursive: true })
      symlinkSync(link.includes('.', 2) ? file : dirname(file), join(dir, link))
      const trust = TrustStore.of([])
      const { hooks, notes } = claudeHooks({ dir, home: false, trust })
      assert.deepEqual(hooks, [])
      assert.match(notes!.join(), /is a link to .*tools.*, outside of .*app/)
      const { hooks: listed, problems } = listHooks({ dir, home: false, claudeHome: false, trust })
      assert.deepEqual([listed, problems.length, filesToTrust(dir)], [[], 1, []])
    })
  }
})

suite('a file with hooks is read in bounded time', () => {
  const anchors = Array.from({ length: 20_000 }, (_, i) => `  - &a${i} { on: onStop, mode: observe, shell: x }\n`)
  const keys = Array.from({ length: 20_000 }, (_, i) => `  k${i}: x\n`)
  const texts = {
    'of 880 kB with anchors': `hooks:\n${anchors.join('')}`,
    'of 256 kB with anchors': `hooks:\n${anchors.slice(0, 4_800).join('')}`,
    'with many aliases': `hooks:\n  - &a x\n${'  - *a\n'.repeat(35_000)}`,
    'with many keys': `hooks:\n${keys.join('').slice(0, 260_000)}`,
  }
  for (const [what, text] of Object.entries(texts)) {
    test(what, () => {
      const dir = mkdtempSync(join(folder, 'large-'))
      write(join(dir, '.hookloop/hooks.yaml'), text)
      const start = performance.now()
      try {
        hookFilesOf(dir)
      } catch {
        // rejected, which is fast enough as well
      }
      assert.ok(performance.now() - start < 10_000)
    })
  }

  test('and one that is too large is an error', () => {
    const dir = mkdtempSync(join(folder, 'large-'))
    write(join(dir, '.hookloop/hooks.yaml'), texts['of 880 kB with anchors'])
    const mistake = { code: 'CONFIG_INVALID', message: /larger than 262,144 bytes/ }
    assert.throws(() => projectHooks({ dir, home: false, trust: 'all' }), mistake)
  })
})
