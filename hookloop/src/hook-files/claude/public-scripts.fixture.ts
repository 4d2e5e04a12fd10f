import type { JsonObject } from '../../values/json.ts'
import type { ClaudeEvent } from './events/claude-events.ts'
import { isHere } from './hook-project.fixture.ts'

/** A published hook: its file, its command, and its expected decisions. */
type PublicScript = {
  readonly title: string
  readonly event: ClaudeEvent
  readonly file: string
  readonly mode?: number
  readonly source: string
  /** Its command; `FILE` is its path. */
  readonly command: string
  readonly cases: readonly (readonly [title: string, input: JsonObject, gives: JsonObject])[]
}

const none = { decision: 'none' }
const bash = (command: string): JsonObject => ({ tool_name: 'Bash', tool_input: { command, description: 'd' } })
const file = (tool_name: string, file_path: string): JsonObject => ({ tool_name, tool_input: { file_path } })

const scripts: readonly PublicScript[] = [
  {
    title: 'a bash script that blocks dangerous commands with jq',
    event: 'PreToolUse',
    file: 'block-dangerous.sh',
    mode: 0o755,
    command: 'FILE',
    source: `#!/usr/bin/env bash
set -euo pipefail
INPUT=$(cat)
COMMAND=$(echo "$INPUT" | jq -r '.tool_input.command // empty')
[ -z "$COMMAND" ] && exit 0
PATTERNS=('rm[[:space:]]+-[a-zA-Z]*r[a-zA-Z]*f' 'git[[:space:]]+push.*--force' ':\\(\\)\\{')
for pattern in "\${PATTERNS[@]}"; do
  if echo "$COMMAND" | grep -qE "$pattern"; then
    echo "BLOCKED: '$COMMAND' matches dangerous pattern '$pattern'" >&2
    exit 2
  fi
done
exit 0
`,
    cases: [
      [
        'rm -rf is denied',
        bash('rm -rf /'),
        {
          decision: 'deny',
          reason: String.raw`BLOCKED: 'rm -rf /' matches dangerous pattern 'rm[[:space:]]+-[a-zA-Z]*r[a-zA-Z]*f'`,
        },
      ],
      ['ls passes', bash('ls -la'), none],
      ['another tool passes', file('Read', '/a'), none],
    ],
  },
  {
    title: 'a Node script that reads /dev/stdin',
    event: 'PreToolUse',
    file: 'by-name.cjs',
    command: 'node FILE',
    source: `const { tool_input } = JSON.parse(require('node:fs').readFileSync('/dev/stdin', 'utf8'))
if (/--no-verify/.test(tool_input.command ?? '')) {
  console.log(JSON.stringify({ decision: 'block', reason: 'Hooks are there to be run.' }))
}
`,
    cases: [
      [
        '--no-verify is denied',
        bash('git commit --no-verify'),
        { decision: 'deny', reason: 'Hooks are there to be run.' },
      ],
      ['a commit passes', bash('git commit'), none],
    ],
  },
  {
    title: 'a Python script that protects secrets with JSON',
    event: 'PreToolUse',
    file: 'protect_env.py',
    command: 'python3 FILE',
    source: `#!/usr/bin/env python3
import json
import sys
from pathlib import PurePath

def main() -> None:
    try:
        data = json.load(sys.stdin)
    except json.JSONDecodeError as e:
        print(f"Error: {e}", file=sys.stderr)
        sys.exit(1)
    path = data.get("tool_input", {}).get("file_path", "")
    name = PurePath(path).name
    if name.startswith(".env") and name != ".env.sample":
        print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
            "permissionDecisionReason": f"{name} holds secrets"}}))
    elif "package-lock.json" in path:
        print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
            "permissionDecisionReason": "generated file"}, "suppressOutput": True}))
    sys.exit(0)

main()
`,
    cases: [
      ['.env is denied', file('Edit', '/p/.env'), { decision: 'deny', reason: '.env holds secrets' }],
      ['.env.sample passes', file('Edit', '/p/.env.sample'), none],
      [
        'a generated file is asked about',
        file('Write', '/p/package-lock.json'),
        { decision: 'ask', reason: 'generated file' },
      ],
    ],
  },
]

/** The programs that the scripts need. */
const programs = ['jq', 'python3']

/** The scripts that can run here. */
export const publicScripts = scripts.filter(({ source, command }) =>
  programs.every((program) => isHere(program) || !new RegExp(`\\b${program}\\b`).test(`${source} ${command}`)),
)
