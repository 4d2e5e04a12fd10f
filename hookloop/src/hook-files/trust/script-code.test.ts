import assert from 'node:assert/strict'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, suite, test } from 'node:test'
import { codeOf } from './code-files.ts'
import { TrustStore } from './trust-store.ts'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-script-')))
after(() => rmSync(folder, { recursive: true, force: true }))

type Files = { readonly [path: string]: string }
type Case = readonly [command: string, changed: string, files?: Files]

const common: Files = {
  'README.md': 'See lib/x.',
  'src/app.ts': 'export {}',
  'src/core/x.js': '',
  'test/app.test.ts': '',
  'package.json':
    '{ "name": "me", "main": "src/app.ts", "scripts": { "test": "sh ./go", "a": "npm run b", "b": "sh ./go" } }',
  go: '',
  'lib/x': '',
  'lib/thing.py': '',
  'lib/thing.txt': '',
  'lib/a.js': '',
  'sub/package.json': '{ "main": "../lib/a.js", "scripts": { "c": "sh ./go" } }',
  'sub/go': '',
  'sub/deep/x': '',
  'node_modules/mod/index.js': '',
  'node_modules/.bin/tool': '#!/bin/sh\n',
}

/** Whether what a command runs is still trusted after a file was changed or added. */
function isTrustedAfter([command, changed, files = {}]: Case): boolean {
  const dir = mkdtempSync(join(folder, 'project-'))
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), text)
    if (text.startsWith('#!')) chmodSync(join(dir, path), 0o755)
  }
  for (const [path, text] of Object.entries({ ...common, ...files })) put(path, text)
  const trust = TrustStore.of(codeOf(command, { dir }))
  assert.deepEqual(trust.untrusted(codeOf(command, { dir })), [])
  if (existsSync(join(dir, changed))) appendFileSync(join(dir, changed), '\n# changed')
  else put(changed, '#!/bin/sh\n')
  return trust.untrusted(codeOf(command, { dir })).length === 0
}

const shell = (text: string): Files => ({ run: `#!/bin/sh\n${text}\n` })
const js = (text: string): Files => ({ 'main.mjs': text })
const python = (text: string): Files => ({ 'hooks/main.py': text })

const changes: { readonly [what: string]: readonly Case[] } = {
  'what a script of a shell runs': [
    ['./run', 'lib/x', shell('./lib/x')],
    ['./run', 'lib/x', shell('L=lib; "$L"/x')],
    ['./run', 'lib/x', shell('cd lib\n. ./x')],
    ['./run', 'lib/new', shell('for f in lib/*; do . ./$f; done')],
    ['./run', 'lib/tool', shell('PATH="$PWD/lib:$PATH"\ntool')],
    ['./run', 'lib/new', shell('exec "$(cd "$(dirname "$0")" && pwd)/lib/x"')],
    ['./run', 'lib/x', shell('. "${0%/*}/lib/x"')],
    ['./run', 'lib/new', shell('run-parts lib')],
    ['sh lib/y', 'sub/deep/x', { 'lib/y': 'cd sub/deep; sh x' }],
    ['make all', 'lib/x', { Makefile: 'all:\n\t@cd lib && ./x\n', 'lib/x': '#!/bin/sh\n' }],
    ['make all', 'lib/rules.mk', { Makefile: 'include lib/rules.mk\nall:\n', 'lib/rules.mk': '' }],
    ['npm run a', 'go'],
    ['npm t', 'go'],
    ['npm start', 'server.js', { 'server.js': '' }],
    ['node --run b', 'go'],
    ['cd sub && npm run c', 'sub/go'],
    ['npx tool', 'node_modules/.bin/tool'],
  ],
  'what a script in another language loads': [
    ['node main.mjs', 'lib/new.mjs', js('await import("./lib/" + name)')],
    ['node main.mjs', 'lib/new.mjs', js('await import(`./lib/${name}`)')],
    ['node main.mjs', 'src/core/x.js', js('require(join(dir, "src", "core", "x"))')],
    ['node main.mjs', 'conf.json', { ...js('import conf from\n  "./conf.json"'), 'conf.json': '{}' }],
    ['node main.mjs', 'node_modules/mod/index.js', js('import "mod"')],
    ['node main.mjs', 'lib/a.js', { ...js('import "#a"'), 'package.json': '{ "imports": { "#a": "./lib/a.js" } }' }],
    [
      'node main.mjs',
      'lib/a.js',
      { ...js('import "me"'), 'package.json': '{ "name": "me", "exports": "./lib/a.js" }' },
    ],
    ['node .', 'lib/a.js', { 'package.json': '{ "main": "lib/a.js" }' }],
    ['node sub', 'lib/a.js'],
    ['python3 hooks/main.py', 'lib/thing.py', python('import sys; sys.path.insert(0, "lib"); import thing')],
    ['python3 hooks/main.py', 'lib/thing.py', python('sys.path.append(os.path.join(here, "..", "lib"))\nimport thing')],
    ['python3 hooks/main.py', 'lib/thing.txt', python('exec(open("lib/thing.txt").read())')],
    ['python3 hooks/main.py', 'lib/thing.txt', python('runpy.run_path("lib/thing.txt")')],
    ['python3 hooks/main.py', 'lib/x', python('subprocess.call(["sh",\n  "lib/x"])')],
    [
      'python3 hooks/main.py',
      'plug/b.py',
      { ...python('from plug import (\n  b)'), 'plug/__init__.py': '', 'plug/b.py': '' },
    ],
  ],
  'what a command line runs in an unusual way': [
    ['cd sub && cd deep && sh x', 'sub/deep/x'],
    ['CDPATH=sub; cd deep; sh x', 'sub/deep/x'],
    ['env -S "sh lib/x"', 'lib/x'],
    ['script -qc "sh go" /dev/null', 'go'],
    ['tar cf /dev/null --checkpoint-action=exec="sh go" lib', 'go'],
    ['N=P; P=lib/x; sh ${!N}', 'lib/x'],
    [`sh -c 'for i; do sh "$i"; done' _ lib/x`, 'lib/x'],
    ['ls | xargs sh', 'lib/x'],
    ['cat lib/thing.txt | bash -s -- all', 'lib/thing.txt'],
    ['bash -c "$(cat lib/thing.txt)"', 'lib/thing.txt'],
    ['cp lib/x /dev/shm/x; sh /dev/shm/x', 'lib/x'],
    ['export $(cat lib/thing.txt | xargs); node main.mjs', 'lib/thing.txt', js('')],
    ['python3 -m json.tool README.md', 'json.py'],
    ['git --exec-path=lib x', 'lib/x'],
    ['HOME=$PWD bash -lc true', '.bash_profile'],
  ],
}

for (const [what, cases] of Object.entries(changes)) {
  suite(`a hook command is no longer trusted after a change of ${what}`, () => {
    for (const each of cases)
      test(`${each[1]}: ${JSON.stringify(each[0])} ${JSON.stringify(Object.values(each[2] ?? {})[0] ?? '')}`, () =>
        assert.equal(isTrustedAfter(each), false))
  })
}

suite('a hook command stays trusted after a change of the code that its script works on', () => {
  const scripts: { readonly [name: string]: string } = {
    'format.sh':
      'cd "$CLAUDE_PROJECT_DIR"\nf=$(jq -r .tool_input.file_path)\nnpx prettier --write "$f" && npx eslint --fix src/\n',
    'lint.sh': 'cd "$(git rev-parse --show-toplevel)"\nfor f in $(git diff --name-only -- src); do eslint "$f"; done\n',
    'types.sh': 'cd src && npx tsc --noEmit\ncargo fmt --manifest-path src/Cargo.toml\n',
    'backup.sh': 'cp README.md "$TMPDIR"\njq . < README.md | python3 -m json.tool\necho "exit 0" | sh\n',
    'notify.sh': 'notify-send "done in src/ from $PWD"\nexport LAST=$(date)\n',
    'guard.py': 'import json, sys\nfrom pathlib import Path\nfor f in Path("src").glob("**/*.ts"):\n  f.read_text()\n',
    'guard.mjs': 'import { execSync } from "node:child_process"\nexecSync("git diff --name-only src/")\n',
  }
  for (const place of ['', '.claude/', '.claude/hooks/', 'hooks/'])
    for (const [name, text] of Object.entries(scripts))
      for (const changed of ['src/app.ts', 'src/new.ts', 'test/app.test.ts', 'README.md'])
        test(`${changed}: ${place}${name}`, () => {
          const run = name.endsWith('.py') ? '#!/usr/bin/env python3' : name.endsWith('.sh') ? '#!/bin/bash' : ''
          const command = `${run === '' ? 'node ' : ''}"$CLAUDE_PROJECT_DIR"/${place}${name}`
          assert.equal(isTrustedAfter([command, changed, { [place + name]: `${run}\n${text}` }]), true)
        })
})

test('a hook command stays trusted after a change of a file that its script writes', () => {
  for (const text of ['echo done >> lib/x', 'date > "$PWD/lib/x"', 'npm test 2>&1 | tee lib/x'])
    assert.equal(isTrustedAfter(['./run', 'lib/x', shell(text)]), true, text)
})
