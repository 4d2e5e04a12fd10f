import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { gitEnvironment, isPlainFile, mentionsGit, programsInRepository } from './repository.ts'

const root = mkdtempSync(join(tmpdir(), 'hookloop-repository-'))
after(() => rmSync(root, { recursive: true }))

/** The programs that git would run in a repository with this configuration. */
function programsWith(files: Readonly<Record<string, string>>, command = 'git status'): readonly string[] {
  const folder = mkdtempSync(join(root, 'r-'))
  for (const [path, text] of Object.entries({ '.git/config': '', ...files })) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return programsInRepository(command, folder)
}

test('an ordinary repository has no programs', () => {
  const config =
    '[core]\n\tbare = false\n[remote "origin"]\n\turl = x\n\tfetch = +refs/*\n[branch "main"]\n\tmerge = x\n[diff]\n\talgorithm = patience\n'
  assert.deepEqual(programsWith({ '.git/config': config }), [])
})

test('programs are found in every syntax of the setting', () => {
  for (const config of [
    '[diff "x"]\n\ttextconv = evil',
    '[DIFF "x"] TextConv = evil',
    '[diff.x]\ntextconv=evil',
    '[core]\n[diff "a]b"]\n\ttextconv = evil',
    '[diff "x"]\n\tother = a\\\n b\n\ttextconv = evil',
    '\uFEFF[diff "x"]\n textconv = evil',
    '[diff "a]b"] textconv = evil',
    '[user] [diff "x"] textconv = evil',
    '[user]\n# a comment \\\n[diff "x"]\n\ttextconv = evil',
    '[diff "x"]\n; a comment \\\n\ttextconv = evil',
    '[user]\n\tname = "a # \\" ; b" ; c \\\n[diff "x"]\n\ttextconv = evil',
    '[diff "x"]\r\n\ttextconv = evil\r\n',
    '[diff "x"]textconv',
  ])
    assert.deepEqual(
      programsWith({ '.git/config': config }).map((name) => name.split('.').at(-1)),
      ['textconv'],
      config,
    )
})

test('every setting that runs a program or includes settings is found', () => {
  const config = `[filter "a"]\n\tclean = x\n\tsmudge = x\n\tprocess = x\n[diff]\n\texternal = x\n[diff "b"]\n\tcommand = x
[merge "c"]\n\tdriver = x\n[core]\n\tsshCommand = x\n\tattributesFile = x\n[include]\n\tpath = x\n[includeIf "gitdir:/"]\n\tpath = x
[alias]\n\tst = !x\n[credential]\n\thelper = x\n[gpg]\n\tprogram = x`
  assert.equal(programsWith({ '.git/config': config }).length, 13)
})

test('settings of work trees and submodules are found', () => {
  const evil = '[diff "x"]\n\ttextconv = evil'
  assert.deepEqual(programsWith({ '.git/config.worktree': evil }), ['diff.textconv'])
  assert.deepEqual(programsWith({ '.git/modules/a/b/config': evil }), ['diff.textconv'])
  assert.deepEqual(programsWith({ '.gitmodules': '[submodule "a"]\n\tignore = none' }), ['submodule.ignore'])
})

test('a .git that is a file is followed', () => {
  const folder = mkdtempSync(join(root, 'f-'))
  mkdirSync(join(folder, 'real'))
  mkdirSync(join(folder, 'tree'))
  writeFileSync(join(folder, 'real/config'), '[diff]\n\texternal = evil')
  writeFileSync(join(folder, 'tree/.git'), 'gitdir: ../real\n')
  assert.deepEqual(programsInRepository('git diff', join(folder, 'tree')), ['diff.external'])
})

test('hooks are found for commands that need them, and disabled for all others', () => {
  const files = {
    '.git/config': '[core]\n\thooksPath = .husky',
    '.git/hooks/pre-commit': '',
    '.git/hooks/pre-push.sample': '',
  }
  assert.deepEqual(programsWith(files, 'git commit -m x'), ['core.hookspath', 'hooks/pre-commit'])
  assert.deepEqual(programsWith(files, 'git status'), [])
  assert.ok(Object.values(gitEnvironment('git status')).includes('core.hooksPath'))
  assert.ok(!Object.values(gitEnvironment('git commit')).includes('core.hooksPath'))
})

test('settings that run programs for archives, submodules, edits, maintenance, hooks and large files are found', () => {
  const config = `[tar "x"]\n\tcommand = evil\n[submodule "a"]\n\tupdate = !evil\n[sequence]\n\teditor = evil
[gc]\n\trecentObjectsHook = evil\n[hook "x"]\n\tcommand = evil\n[lfs "extension.x"]\n\tclean = evil`
  assert.deepEqual(programsWith({ '.git/config': config }), [
    'tar.command',
    'submodule.update',
    'sequence.editor',
    'gc.recentobjectshook',
    'hook.command',
    'lfs.clean',
  ])
})

test('git speaks only protocols that are not names of programs, and does not fetch submodules', () => {
  const environment = gitEnvironment('git fetch')
  assert.equal(environment['GIT_ALLOW_PROTOCOL'], 'file:git:http:https:ssh')
  assert.ok(Object.values(environment).includes('fetch.recurseSubmodules'))
})

test('a folder that is a link has the settings of the folder it leads to', () => {
  const folder = mkdtempSync(join(root, 'l-'))
  mkdirSync(join(folder, 'real/.git'), { recursive: true })
  mkdirSync(join(folder, 'work'))
  writeFileSync(join(folder, 'real/.git/config'), '[diff]\n\texternal = evil')
  symlinkSync(join(folder, 'real'), join(folder, 'work/link'))
  assert.deepEqual(programsInRepository('git diff', join(folder, 'work/link')), ['diff.external'])
})

test('a plain file is not a link, not executable and not behind a link', () => {
  const folder = mkdtempSync(join(root, 'w-'))
  mkdirSync(join(folder, 'logs'))
  for (const name of ['a.log', 'x.log'])
    writeFileSync(join(folder, name), '', { mode: name === 'x.log' ? 0o755 : 0o644 })
  symlinkSync('a.log', join(folder, 'link.log'))
  symlinkSync('logs', join(folder, 'more'))
  assert.deepEqual(
    ['a.log', 'new.log', './logs/new.log', 'none/new.log', 'x.log', 'link.log', 'more/new.log'].map((path) =>
      isPlainFile(folder, path),
    ),
    [true, true, true, true, false, false, false],
  )
  writeFileSync(join(folder, 'logs/a.ts'), '')
  mkdirSync(join(folder, 'links'))
  symlinkSync('../a.log', join(folder, 'links/a.ts'))
  assert.deepEqual(
    ['logs/*.ts', 'links/*.ts', '*/a.ts'].map((path) => isPlainFile(folder, path)),
    [true, false, false],
  )
})

test('an incomplete repository does not hide the one above it', () => {
  const folder = mkdtempSync(join(root, 'o-'))
  for (const name of ['.git/objects', '.git/refs', 'in/.git']) mkdirSync(join(folder, name), { recursive: true })
  writeFileSync(join(folder, '.git/HEAD'), 'ref: refs/heads/main\n')
  writeFileSync(join(folder, '.git/config'), '[diff]\n\texternal = evil')
  assert.deepEqual(programsInRepository('git diff', join(folder, 'in')), ['diff.external'])
})

test('an unreadable configuration needs approval, and a pipe does not block', () => {
  const unreadable = ['a setting that cannot be read']
  for (const config of ['[diff "x\n', '[diff]\n\t= x', '[diff]\n\tname value', `[a]\n\tb = ${'x'.repeat(2 ** 21)}`])
    assert.deepEqual(programsWith({ '.git/config': config }), unreadable)
  const folder = mkdtempSync(join(root, 'p-'))
  mkdirSync(join(folder, '.git'))
  execFileSync('mkfifo', [join(folder, '.git/config')])
  assert.deepEqual(programsInRepository('git status', folder), unreadable)
})

test('git is found in a command however it is quoted', () => {
  assert.deepEqual(
    ['g\\it diff', "g'i't diff", 'g""it diff', "$'git' diff", 'g\\\nit diff'].filter(mentionsGit).length,
    5,
  )
})

test('git is found anywhere in a command', () => {
  assert.deepEqual(['git log', '/usr/bin/git log', 'ls;git log', 'ls digit', 'echo "git"'].map(mentionsGit), [
    true,
    true,
    true,
    false,
    true,
  ])
})
