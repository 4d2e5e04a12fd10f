import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { commandProblems } from './command-problems.ts'

const cwd = mkdtempSync(join(tmpdir(), 'command-problems-'))
mkdirSync(join(cwd, 'hooks'))
writeFileSync(join(cwd, 'hooks', 'check.sh'), '#!/bin/sh\n')
chmodSync(join(cwd, 'hooks', 'check.sh'), 0o755)
after(() => rmSync(cwd, { recursive: true }))

describe('commandProblems', () => {
  const fine = [
    '"$CLAUDE_PROJECT_DIR"/hooks/check.sh --fast',
    '"${CLAUDE_PROJECT_DIR}/hooks"/check.sh',
    `sh "$CLAUDE_PROJECT_DIR"'/hooks/check.sh' 2>&1 | cat`,
    'echo "one; no-such-program two"',
    'echo "{\\"a\\": \\"b | no-such-program\\"}"',
    'LEVEL=2; export LEVEL; LEVEL=3 ./hooks/check.sh',
    'cat > /dev/null \\\n  --number',
  ]
  for (const line of fine) {
    test(`there is no problem with ${line}`, () => assert.deepEqual(commandProblems(line, { cwd }), []))
  }

  const missing = [
    ['"$CLAUDE_PROJECT_DIR"/hooks/gone.sh', `"${join(cwd, 'hooks', 'gone.sh')}" does not exist`],
    ['echo "fine"; A=1 B=2 ./gone.sh', '"./gone.sh" does not exist'],
    ['cat | sh "hooks"/gone.sh', '"hooks/gone.sh" does not exist'],
  ] as const
  for (const [line, problem] of missing) {
    test(`a missing file is reported for ${line}`, () => assert.deepEqual(commandProblems(line, { cwd }), [problem]))
  }
})
