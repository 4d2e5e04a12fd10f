import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withoutCommand } from './command-name.ts'

const unchanged: readonly (readonly [command: string, printed: string])[] = [
  ['cat >/dev/null\ncat <<EOF >&2\nDo not push to main.\nEOF\nexit 2', 'Do not push to main.'],
  ['npm test', 'Run npm test before you stop, it fails.'],
  ['bash hooks/check.sh', 'Blocked: do not edit src/check.sh'],
  ['bash hooks/check.sh', 'Blocked.\nSee https://example.com/docs/check.sh'],
  ['node hooks/check.js', 'Do not use node: it is not installed on servers. Do not edit hooks/check.js.'],
]
for (const [command, printed] of unchanged) {
  test(`what a hook says itself does not change: ${JSON.stringify(printed)}`, () => {
    assert.equal(withoutCommand(printed, command), printed)
  })
}

const shortened: readonly (readonly [command: string, printed: string, shown: string])[] = [
  ['./check.sh --token abc ;;', "sh: -c: line 1: `./check.sh --token abc ;;'", "sh: -c: line 1: `check.sh'"],
  ['sh keys/guard.sh', 'keys/guard.sh: Never.', 'guard.sh: Never.'],
  ['sh keys/guard.sh', 'keys/guard.sh: line 3: jq: command not found', 'guard.sh: line 3: jq: command not found'],
  [
    'python3 "$HOME"/keys/guard.py',
    "python3: can't open file '/opt/keys/guard.py': [Errno 2] No such file",
    "python3: can't open file 'guard.py': [Errno 2] No such file",
  ],
  [
    'perl keys/guard.pl',
    'Can\'t open perl script "keys/guard.pl": No such file',
    'Can\'t open perl script "guard.pl": No such file',
  ],
]
for (const [command, printed, shown] of shortened) {
  test(`a line that quotes the command or names its folder has its name instead: ${JSON.stringify(shown)}`, () => {
    assert.equal(withoutCommand(`${printed}\nDenied.`, command), `${shown}\nDenied.`)
  })
}
