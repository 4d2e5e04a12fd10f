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
})
