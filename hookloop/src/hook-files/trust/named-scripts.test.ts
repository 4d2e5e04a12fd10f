import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, suite, test } from 'node:test'
import { namedScripts } from './named-scripts.ts'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-named-')))
after(() => rmSync(folder, { recursive: true, force: true }))
const [dir, outside] = [join(folder, 'project'), join(folder, 'outside')]
mkdirSync(join(dir, 'hooks', 'more'), { recursive: true })
mkdirSync(outside)
const write = (path: string, text = 'x'): void => writeFileSync(path, text)
for (const name of ['check.sh', 'check.py', 'rules.json', 'with space.sh', 'notes.txt', 'run.log', 'more/deep.js']) {
  write(join(dir, 'hooks', name))
}
write(join(dir, 'package.json'), '{}')
write(join(dir, 'Makefile'), 'all:')
write(join(dir, 'tool'), '#!/bin/sh\n')
write(join(dir, 'stamp'), '')
write(join(dir, 'bin'), 'ELF')
chmodSync(join(dir, 'bin'), 0o755)
write(join(outside, 'shared.sh'))
symlinkSync(join(outside, 'shared.sh'), join(dir, 'hooks', 'linked.sh'))

suite('namedScripts', () => {
  const cases: readonly [command: string, files: readonly string[], options?: object][] = [
    ['./hooks/check.sh', ['hooks/check.sh']],
    ['hooks/check.sh --fast', ['hooks/check.sh']],
    ['python3 hooks/check.py', ['hooks/check.py']],
    ['node "$CLAUDE_PROJECT_DIR/hooks/more/deep.js"', ['hooks/more/deep.js']],
    ['bash ${CLAUDE_PROJECT_DIR}/hooks/check.sh', ['hooks/check.sh']],
    ['"$PWD/hooks/with space.sh"', ['hooks/with space.sh']],
    ["'./hooks/with space.sh' x", ['hooks/with space.sh']],
    ['cd hooks && ./check.sh', ['hooks/check.sh']],
    ['true; ./hooks/check.sh | ./hooks/check.py && echo done', ['hooks/check.sh', 'hooks/check.py']],
    ['echo $(./hooks/check.sh)', ['hooks/check.sh']],
    ['echo `./hooks/check.sh`', ['hooks/check.sh']],
    ['bash -c "hooks/check.sh && true"', ['hooks/check.sh']],
    ['guard --rules=hooks/rules.json', ['hooks/rules.json']],
    ['RULES=hooks/rules.json ./tool', ['hooks/rules.json', 'tool']],
    ["grep -qE 'rm[[:space:]]+-rf' && hooks/check.sh", ['hooks/check.sh']],
    [`node -e "[${'{a,b}'.repeat(25)}]" hooks/check.sh`, ['hooks/check.sh']], // as a pattern, it would have millions of expansions
    ['cat /**/check.sh /*/*/*/*/*/*/check.sh', []], // would search the whole disk
    ['for f in hooks/*.sh; do sh $f; done', ['hooks/check.sh', 'hooks/linked.sh', 'hooks/with space.sh']],
    ['npm run lint', ['package.json']],
    ['make check', ['Makefile']],
    ['./bin', ['bin']],
    [`${outside}/shared.sh`, ['../outside/shared.sh']],
    ['hooks/linked.sh', ['../outside/shared.sh']],
    ['../outside/shared.sh', ['../outside/shared.sh']],
    ['./check.sh', ['hooks/check.sh'], { cwd: join(dir, 'hooks') }],
    ['$PLUGIN/check.sh', ['hooks/check.sh'], { variables: { PLUGIN: join(dir, 'hooks') } }],
    ['jq . && /bin/sh -c true && /usr/bin/env true', []],
    ['touch stamp; tee -a hooks/run.log hooks/notes.txt', []],
    ['echo x >> hooks/rules.json', []],
    ['no-such-file.sh', []],
    ['. ..', []],
    ['', []],
  ]
  for (const [command, files, options = {}] of cases) {
    test(`the files of "${command}" are ${files.join(', ') || 'none'}`, () => {
      const found = namedScripts(command, { dir, ...options }).map(({ path }) => relative(dir, path))
      const expected = command.includes('*.sh')
        ? files.map((file) => (file === 'hooks/linked.sh' ? '../outside/shared.sh' : file))
        : files
      assert.deepEqual(found.toSorted(), expected.toSorted())
    })
  }
})
