import assert from 'node:assert/strict'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { after, suite, test } from 'node:test'
import { codeOf, type CodeIn, type HookCommand } from './code-files.ts'
import { TrustStore } from './trust-store.ts'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-code-')))
after(() => rmSync(folder, { recursive: true, force: true }))

const outside = join(folder, 'outside')
const content: { readonly [path: string]: string } = {
  'README.md': 'See hooks/guard.',
  'src/app.ts': 'export {}',
  'src/deep/more.ts': 'export {}',
  'package.json':
    '{ "scripts": { "lint": "node tools/lint.js", "prelint": "sh tools/pre", "fmt": "prettier --check ." } }',
  'Taskfile.yml': 'version: 3',
  Makefile: 'check:\n\tsh tools/check.sh\n',
  'tools/lint.js': '',
  'tools/pre': '',
  'tools/check.sh': '',
  'hooks/guard': '. ./lib.sh',
  'hooks/check.js': "require('../shared/util')",
  'hooks/guard.py': 'import json\nfrom rules import all_rules\n',
  'hooks/a b.sh': '',
  'hooks/a.sh': '. "$(dirname "$0")"/../shared/common.sh\n',
  'hooks/lib.sh': '',
  'hooks/rules.py': '',
  'hooks/rules.json': '{}',
  'hooks/more/deep.js': '',
  'hooks/run.log': '',
  'shared/util.js': '',
  'shared/common.sh': '',
  'main.py': 'import json\nimport helper.part\n',
  'helper/part.py': '',
  'helper/__init__.py': '',
  'guard-at-root': '. ./part-at-root\n',
  'part-at-root': '',
  'bin/python': '',
  '.claude/hooks/x.sh': '#!/bin/sh\n',
  'node_modules/checker/cli.js': "#!/usr/bin/env node\nrequire('./lib')",
  'node_modules/checker/lib/index.js': '',
  'prettier.config.mjs': 'export default {}',
}

function makeProject(): string {
  const dir = mkdtempSync(join(folder, 'project-'))
  for (const [path, text] of Object.entries(content)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), text)
  }
  for (const path of ['hooks/a.sh', 'bin/python', '.claude/hooks/x.sh']) chmodSync(join(dir, path), 0o755)
  mkdirSync(join(dir, 'node_modules/.bin'))
  symlinkSync('../checker/cli.js', join(dir, 'node_modules/.bin/checker'))
  symlinkSync('hooks', join(dir, 'linked'))
  return dir
}

mkdirSync(outside)
writeFileSync(join(outside, 'shared.sh'), '')

/** Whether what a command runs is still trusted after a file was changed or added. */
function isTrustedAfter(command: HookCommand, file: string, options: Partial<CodeIn> = {}): boolean {
  const dir = makeProject()
  const places = { dir, ...options, ...(options.cwd !== undefined && { cwd: join(dir, options.cwd) }) }
  const trust = TrustStore.of(codeOf(command, places))
  assert.deepEqual(trust.untrusted(codeOf(command, places)), [])
  mkdirSync(dirname(join(dir, file)), { recursive: true })
  if (existsSync(join(dir, file))) appendFileSync(join(dir, file), '\n# changed')
  else writeFileSync(join(dir, file), 'added')
  return trust.untrusted(codeOf(command, places)).length === 0
}

suite('a hook command is no longer trusted after a change of', () => {
  const cases: readonly [command: HookCommand, files: string, options?: Partial<CodeIn>][] = [
    ['"$HOOKLOOP_PROJECT_DIR"/hooks/a.sh', 'hooks/a.sh'],
    ['$CLAUDE_PROJECT_DIR/hooks/a.sh', 'hooks/a.sh'],
    ['"${CLAUDE_PROJECT_DIR:-.}/hooks/a.sh"', 'hooks/a.sh'],
    ['sh ${HOOKS_FOLDER:-hooks}/guard', 'hooks/guard'],
    ['sh hooks/guard', 'hooks/guard'],
    ['python3 hooks/guard', 'hooks/guard'],
    ['sh hooks/a\\ b.sh', 'hooks/a b.sh'],
    ["sh hooks/'a b'.sh", 'hooks/a b.sh'],
    ["sh $'hooks/a\\x20b.sh'", 'hooks/a b.sh'],
    ['node ./hooks/check', 'hooks/check.js'],
    ['node -r ./hooks/check -e 0', 'hooks/check.js'],
    ['node -r./hooks/check -e 0', 'hooks/check.js'],
    ['node --import=./hooks/more/deep.js main', 'hooks/more/deep.js'],
    ['bin/python hooks/guard', 'hooks/guard'],
    ['bin/python hooks/guard', 'bin/python'],
    ['./bin/python -m hooks.guard', 'hooks/guard.py'],
    ['python3 hooks', 'hooks/rules.py'],
    ['PYTHONPATH=hooks python3 -c "import guard"', 'hooks/guard.py'],
    ['cd hooks && sh a.sh', 'hooks/a.sh'],
    ['D=hooks; sh "$D/a.sh"', 'hooks/a.sh'],
    ['bash -c "hooks/a.sh && true"', 'hooks/a.sh'],
    ['bash -lc "cd hooks; . ./guard"', 'hooks/guard'],
    ['sh <<< ". hooks/guard"', 'hooks/guard'],
    ['sh < hooks/guard', 'hooks/guard'],
    ['cat hooks/guard | sh', 'hooks/guard'],
    ['sh <<EOF\n. hooks/guard\nEOF', 'hooks/guard'],
    ['echo $(sh hooks/guard)', 'hooks/guard'],
    ['echo `sh hooks/guard`', 'hooks/guard'],
    ['env -i timeout 5 nice -n 3 sh hooks/guard', 'hooks/guard'],
    ['for f in hooks/*.sh; do sh "$f"; done', 'hooks/lib.sh'],
    ['sh hooks/*.sh', 'hooks/lib.sh'],
    ['python3 *.py', 'main.py'],
    ['node -e "require(\'./hooks/check\')"', 'hooks/check.js'],
    ['eval "$(cat hooks/guard)"', 'hooks/guard'],
    ['sh "$(cat .next)"', 'src/app.ts'],
    ['linked/a.sh', 'hooks/a.sh'],
    [['sh', 'hooks/a b.sh'], 'hooks/a b.sh'],
    [['${CLAUDE_PROJECT_DIR}/hooks/a.sh'], 'hooks/a.sh'],
    ['./guard', 'hooks/guard', { cwd: 'hooks' }],
    ['sh $PLUGIN/guard', 'hooks/guard', { variables: { PLUGIN: 'hooks' } }],
    ['"$CLAUDE_PROJECT_DIR"/.claude/hooks/x.sh', '.claude/hooks/x.sh'],
    ['sh hooks/{guard,a.sh}', 'hooks/guard'],
    ['sh ~+/hooks/guard', 'hooks/guard'],
    // what another program runs
    ['xargs -a list sh hooks/guard', 'hooks/guard'],
    ['parallel sh ::: hooks/guard', 'hooks/guard'],
    ['find hooks -name guard -exec sh {} \\;', 'hooks/guard'],
    ['find . -name guard -execdir {} +', 'hooks/guard'],
    ['PATH="$PWD/bin:$PATH"; python x', 'bin/python'],
    ['NODE_OPTIONS="--no-warnings -r ./hooks/check" node -v', 'hooks/check.js'],
    ['LD_PRELOAD=./hooks/guard true', 'hooks/guard'],
    ['export BASH_ENV=hooks/guard; npm run fmt', 'hooks/guard'],
    ['GIT_SSH_COMMAND="sh hooks/guard" git fetch', 'hooks/guard'],
    // what a script loads
    ['sh hooks/guard', 'hooks/lib.sh'],
    ['hooks/a.sh', 'shared/common.sh'],
    ['node hooks/check.js', 'shared/util.js'],
    ['python3 hooks/guard.py', 'hooks/rules.py'],
    ['python3 main.py', 'helper/part.py'],
    ['sh guard-at-root', 'part-at-root'],
    ['hooks/a.sh', 'hooks/rules.json'],
    // a file that did not exist
    ['python3 hooks/guard.py', 'hooks/json.py'],
    ['python3 main.py', 'json.py'],
    ['sh hooks/guard', 'hooks/new'],
    ['sh hooks/later', 'hooks/later'],
    ['hooks/a.sh', 'hooks/more/new.sh'],
    // what defines a command
    ['npm run lint', 'package.json'],
    ['npm run lint', 'tools/lint.js'],
    ['npm run lint', 'tools/pre'],
    ['make check', 'Makefile'],
    ['task check', 'Taskfile.yml'],
    ['nox -s lint', 'noxfile.py'],
    ['gulp lint', 'gulpfile.mjs'],
    ['ant check', 'build.xml'],
    ['direnv exec . true', '.envrc'],
    ['pre-commit run', '.pre-commit-config.yaml'],
    ['mvn -q verify', 'pom.xml'],
    ['gradle check', 'build.gradle.kts'],
    ['nix-shell --run true', 'shell.nix'],
    ['make check', 'tools/check.sh'],
    ['npm run fmt', '.npmrc'],
    ['npx checker', 'node_modules/checker/cli.js'],
    ['npx checker .', 'node_modules/checker/lib/index.js'],
    ['node_modules/.bin/checker', 'node_modules/checker/lib/index.js'],
    ['prettier --check .', 'prettier.config.mjs'],
    ['guard --rules=hooks/rules.json', 'hooks/rules.json'],
    ['../outside/shared.sh', '../outside/shared.sh'],
  ]
  for (const [command, file, options] of cases) {
    test(`${file}: ${JSON.stringify(command)}`, () => assert.equal(isTrustedAfter(command, file, options), false))
  }
})

suite('a hook command stays trusted after a change of', () => {
  const cases: readonly [command: string, file: string][] = [
    ['prettier --check .', 'src/app.ts'],
    ['prettier --check src', 'src/app.ts'],
    ['npx prettier --check src/deep', 'src/deep/more.ts'],
    ['npm run fmt', 'src/app.ts'],
    ['npm test', 'test/new.test.ts'],
    ['npm run lint src/deep/more.ts', 'src/app.ts'],
    ['cd src && eslint .', 'src/app.ts'],
    ['f=$(jq -r .tool_input.file_path); npx prettier --write "$f"', 'src/app.ts'],
    ['f=$(jq -r .tool_input.file_path); python3 -m black "$f"', 'src/app.ts'],
    ["jq -r .tool_input.command | grep -qE 'rm[[:space:]]+-rf' && exit 2", 'src/app.ts'],
    ['hooks/a.sh src', 'src/app.ts'],
    ['hooks/a.sh', 'src/app.ts'],
    ['hooks/a.sh', 'README.md'],
    ['sh guard-at-root', 'README.md'],
    ['sh guard-at-root', 'hooks/guard'],
    ['echo x >> hooks/rules.json', 'hooks/rules.json'],
    ['touch stamp; tee -a hooks/run.log', 'hooks/run.log'],
    ['hooks/a.sh', 'hooks/run.log'],
    ['python3 hooks/guard.py', 'hooks/__pycache__/rules.cpython-312.pyc'],
    ['make check', 'src/app.ts'],
    ["find src -name '*.md' -exec prettier --check {} +", 'src/app.ts'],
    ['grep -rn bash README.md', 'README.md'],
    ["jq '{a:1}' src/app.ts", 'README.md'],
  ]
  for (const [command, file] of cases) {
    test(`${file}: ${JSON.stringify(command)}`, () => assert.equal(isTrustedAfter(command, file), true))
  }
})

suite('codeOf', () => {
  const dir = makeProject()
  const pathsOf = (command: string): readonly string[] =>
    codeOf(command, { dir }).map(({ path }) => relative(dir, path))

  test('a removed file of the folder of a script is a change', () => {
    const own = makeProject()
    const trust = TrustStore.of(codeOf('hooks/a.sh', { dir: own }))
    rmSync(join(own, 'hooks/rules.json'))
    assert.deepEqual(
      trust.untrusted(codeOf('hooks/a.sh', { dir: own })).map(({ path }) => relative(own, path)),
      ['hooks'],
    )
  })

  test('programs of the system and commands without files have no code in the project', () => {
    for (const command of [
      '/bin/sh -c true && /usr/bin/env true',
      'no-such-file.sh',
      '. ..',
      '',
      'cat /**/x.sh /*/*/*/x.sh',
    ])
      assert.deepEqual(pathsOf(command), [], command)
  })

  test('a folder with too many files is never trusted, and the message says why', () => {
    const own = mkdtempSync(join(folder, 'large-'))
    mkdirSync(join(own, 'hooks'))
    for (let i = 0; i <= 5_001; i++) writeFileSync(join(own, 'hooks', `${i}.sh`), '')
    const [large] = TrustStore.of(codeOf('sh hooks/1.sh', { dir: own })).untrusted(
      codeOf('sh hooks/1.sh', { dir: own }),
    )
    assert.match(large?.problem ?? '', /more than 5,000 files/)
  })

  test('hostile commands are read in bounded time', () => {
    for (const hostile of [
      '$('.repeat(20_000),
      '${a:-'.repeat(5_000),
      '"'.repeat(100_001),
      `node -e "[${'{a,b}'.repeat(2_000)}]"`,
    ]) {
      codeOf(hostile, { dir })
    }
    assert.match(codeOf('$('.repeat(100), { dir })[0]?.problem ?? '', /nested too deeply/)
  })
})
