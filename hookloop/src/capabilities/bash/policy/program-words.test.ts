import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { commandJudge, type Verdict } from './judge-command.ts'
import type { CommandRules } from './rules.ts'

type Expected = { readonly [verdict in Verdict]?: readonly string[] }

function assertVerdicts(rules: CommandRules, expected: Expected): void {
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

  test('an effect is named by the words of a rule, not by a star or by an option before it', () => {
    assertVerdicts(
      { allow: ['*', 'git *', 'python3 -m *', 'docker compose *', 'git stash'] },
      {
        allow: ['env CI=1 ls', 'git status', 'python3 -m pip list', 'docker compose ps', 'git stash pop'],
        ask: [
          'env',
          'git branch x',
          'git tag v1',
          'git branch -t x main',
          'python3 -m pip install x',
          'python3 -m venv x',
          'docker compose up',
          'gcc a.c -o x',
          'tsc',
          'gradle init',
          'go build ./...',
          'cargo build',
        ],
      },
    )
    assertVerdicts({ allow: ['python3 -m'] }, { ask: ['python3 -m pip install x'] })
    assertVerdicts(
      { allow: ['python3 -m pip install', 'git branch'] },
      { allow: ['python3 -m pip install x', 'git branch x'] },
    )
  })

  test('copies keep what a file is for, and name the files that they write', () => {
    assertVerdicts(
      { allow: ['cp', 'mv', 'cd', 'touch', 'git mv', 'git checkout'] },
      {
        allow: [
          'cp a.ts b.ts && cp c.ts d.ts',
          'mv a.txt b.txt',
          'cp a.log logs/',
          'cp .env.example .env',
          'cp -r src dist',
          'cp src/*.ts backup/',
          "mv 'app/[id]/page.tsx' app/page.tsx",
          'git mv a.ts b.ts',
        ],
        ask: ['cp a.log logs', 'cp src/* backup/', 'cp -r src/ .', 'mv a.ts b.ts && mv c.ts b.ts'],
      },
    )
    const writes = (command: string) => commandJudge({ allow: ['cp'] })(command).commands.at(-1)!.writes
    assert.deepEqual(writes('cp a.ts c/d.ts b'), ['b', 'b/a.ts', 'b', 'b/d.ts'])
    assert.deepEqual(writes('cp src/*.ts b/'), ['b/*.ts'])
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
})

suite('commands that agents run every day', () => {
  test('two stars at the end of a rule match one or more operands of a program without a grammar, and no options', () => {
    assertVerdicts(
      { allow: ['bd **', 'pulumi stack *', 'git **', 'gh **'] },
      {
        allow: ['bd show a-1', 'bd a b c d', 'pulumi stack x'],
        ask: ['bd', 'bd list --all', 'bd $x', 'pulumi stack x y', 'git worktree add x', 'gh pr merge 1', './bd show x'],
      },
    )
  })

  test('a script of a package may be run by its usual name, another word after pnpm or yarn needs a rule that names it', () => {
    assertVerdicts(
      { allow: ['pnpm', 'yarn'] },
      {
        allow: ['pnpm test:e2e', 'pnpm --filter web lint:fix', 'yarn build:docs'],
        ask: ['pnpm tsx x.ts', 'pnpm dlx x', 'pnpm ci', 'yarn up', 'pnpm test:e2e --dir ../x'],
      },
    )
  })

  test('a rule that denies or asks may end with **, and matches without further words as well', () => {
    assertVerdicts(
      { allow: ['bd **', 'bd'], deny: ['bd rm **'], ask: ['bd edit **'] },
      { allow: ['bd', 'bd show a'], deny: ['bd rm', 'bd rm a b'], ask: ['bd edit', 'bd edit a'] },
    )
  })

  test('source runs a script that a rule names, and no other', () => {
    assertVerdicts(
      { allow: ['source venv/bin/activate', '. ./env.sh', 'source *', '*'] },
      {
        allow: ['source venv/bin/activate', '. ./env.sh'],
        ask: ['source venv/bin/activate2', 'source <(ls)', 'source venv/bin/activate x', 'source', '. env.sh'],
      },
    )
  })

  test('a package may have extras', () => {
    assertVerdicts(
      { allow: ['pip install'] },
      { allow: ["pip install 'mcp[cli]' 'a[b,c]==1.2'"], ask: ["pip install './a[b]'", "pip install 'a[b]@/x'"] },
    )
  })

  test('a redirection that sets a variable needs approval', () => {
    assertVerdicts({ allow: ['ls'] }, { allow: ['ls 3> out.txt'], ask: ['ls {fd}> out.txt'] })
  })
})
