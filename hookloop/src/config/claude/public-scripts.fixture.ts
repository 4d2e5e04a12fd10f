import type { JsonObject } from '../../data/json.ts'
import type { ClaudeEvent } from './events.ts'

/** A hook as people publish them: its file, how it is called, and what it does to which events. */
export type PublicScript = {
  readonly title: string
  readonly event: ClaudeEvent
  readonly file: string
  readonly mode?: number
  readonly source: string
  /** How it is called; `FILE` is its path. */
  readonly command: string
  readonly cases: readonly (readonly [title: string, input: JsonObject, gives: JsonObject])[]
}

const none = { decision: 'none' }
const bash = (command: string): JsonObject => ({ tool_name: 'Bash', tool_input: { command, description: 'd' } })
const file = (tool_name: string, file_path: string): JsonObject => ({ tool_name, tool_input: { file_path } })

export const publicScripts: readonly PublicScript[] = [
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
  {
    title: 'a script in node that rewrites a command',
    event: 'PreToolUse',
    file: 'use-pnpm.mjs',
    command: 'node FILE',
    source: `
let input = ''
process.stdin.on('data', (chunk) => (input += chunk))
process.stdin.on('end', () => {
  const { tool_name, tool_input } = JSON.parse(input)
  if (tool_name !== 'Bash' || !/^npm /.test(tool_input.command)) process.exit(0)
  console.log(JSON.stringify({
    systemMessage: 'npm became pnpm',
    hookSpecificOutput: {
      hookEventName: 'PreToolUse',
      permissionDecision: 'allow',
      updatedInput: { ...tool_input, command: tool_input.command.replace(/^npm /, 'pnpm ') },
    },
  }))
})
`,
    cases: [
      [
        'npm becomes pnpm',
        bash('npm install'),
        {
          decision: 'allow',
          updatedInput: { command: 'pnpm install', description: 'd' },
          systemMessage: 'npm became pnpm',
        },
      ],
      ['ls passes', bash('ls'), none],
    ],
  },
  {
    title: 'a bash script in the older words',
    event: 'PreToolUse',
    file: 'legacy.sh',
    command: 'bash FILE',
    source: `#!/bin/bash
cmd=$(jq -r .tool_input.command)
case "$cmd" in
  grep*) jq -n --arg r "Use rg instead of: $cmd" '{decision: "block", reason: $r}' ;;
  ls*) echo '{"decision": "approve", "reason": "listing"}' ;;
esac
`,
    cases: [
      ['grep is denied', bash('grep -r x'), { decision: 'deny', reason: 'Use rg instead of: grep -r x' }],
      ['ls is allowed', bash('ls'), { decision: 'allow', reason: 'listing' }],
      ['anything else has no opinion', bash('pwd'), none],
    ],
  },
  {
    title: 'a line that formats after an edit',
    event: 'PostToolUse',
    file: 'unused',
    command: `jq -r '.tool_input.file_path' | { read -r f; if [[ "$f" == *.ts ]]; then echo "formatted $f"; fi; }`,
    source: '',
    cases: [
      ['a file of its kind', file('Edit', '/p/a.ts'), none],
      ['another file', file('Edit', '/p/a.md'), none],
    ],
  },
  {
    title: 'a Python script that checks types after an edit',
    event: 'PostToolUse',
    file: 'check.py',
    command: 'FILE',
    mode: 0o755,
    source: `#!/usr/bin/env python3
import json, sys
event = json.loads(sys.stdin.read())
if event["tool_response"].get("success") is False:
    print("tool failed", file=sys.stderr); sys.exit(1)
if event["tool_input"]["file_path"].endswith(".py"):
    print(json.dumps({"decision": "block", "reason": "E501 line too long",
                      "hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "ruff 0.5"}}))
`,
    cases: [
      [
        'feedback and context',
        { ...file('Write', '/p/a.py'), tool_response: { filePath: '/p/a.py', success: true } },
        { decision: 'block', reason: 'E501 line too long', additionalContext: 'ruff 0.5' },
      ],
      ['another file', { ...file('Write', '/p/a.ts'), tool_response: { filePath: '/p/a.ts' } }, none],
    ],
  },
  {
    title: 'a bash script that adds the state of git to a prompt',
    event: 'UserPromptSubmit',
    file: 'git-context.sh',
    command: 'bash "$CLAUDE_PROJECT_DIR"/.claude/hooks/git-context.sh',
    source: `#!/bin/bash
prompt=$(jq -r '.prompt')
if [[ "$prompt" =~ [Pp]assword ]]; then
  echo '{"decision":"block","reason":"Do not paste passwords."}'
  exit 0
fi
echo "Branch: main"
echo "Files: 0 changed"
`,
    cases: [
      ['context', { prompt: 'hello' }, { decision: 'context', additionalContext: 'Branch: main\nFiles: 0 changed' }],
      ['a block', { prompt: 'my password is x' }, { decision: 'block', reason: 'Do not paste passwords.' }],
    ],
  },
  {
    title: 'a Python script that loads context when a session starts',
    event: 'SessionStart',
    file: 'load_context.py',
    command: 'python3 "$CLAUDE_PROJECT_DIR/.claude/hooks/load_context.py"',
    source: `import json, os, sys
event = json.load(sys.stdin)
if os.environ.get("CLAUDE_ENV_FILE"):
    with open(os.environ["CLAUDE_ENV_FILE"], "a") as f:
        f.write("export NODE_ENV=development\\n")
print(json.dumps({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": f"started by {event['source']}"}}))
`,
    cases: [
      [
        'context and a variable',
        { source: 'resume' },
        {
          decision: 'context',
          additionalContext: 'started by resume',
          other: { environment: { NODE_ENV: 'development' } },
        },
      ],
    ],
  },
  {
    title: 'a bash script that does not let it stop before the tests pass, once',
    event: 'Stop',
    file: 'stop.sh',
    command: 'FILE',
    mode: 0o755,
    source: `#!/bin/bash
input=$(cat)
if [ "$(jq -r '.stop_hook_active' <<< "$input")" = "true" ]; then exit 0; fi
transcript=$(jq -r '.transcript_path' <<< "$input")
[ -f "$transcript" ] || { echo "no transcript" >&2; exit 1; }
jq -n '{decision:"block", reason:"Run the tests before you stop."}'
`,
    cases: [
      ['the first time', { stop_hook_active: false }, { decision: 'block', reason: 'Run the tests before you stop.' }],
      ['the second time', { stop_hook_active: true }, none],
    ],
  },
  {
    title: 'a script that tells somebody',
    event: 'Notification',
    file: 'notify.sh',
    command: 'bash FILE',
    source: `#!/bin/bash
msg=$(jq -r '.message // "hello"')
command -v notify-send >/dev/null && notify-send "$msg" || printf '%s\\n' "$msg"
exit 0
`,
    cases: [['says nothing', { message: 'waiting', notification_type: 'idle_prompt' }, none]],
  },
  {
    title: 'a Python script that logs, and prints its input back',
    event: 'PreToolUse',
    file: 'log.py',
    command: 'python3 FILE',
    source: `import json, os, sys
data = json.load(sys.stdin)
path = os.path.join(os.environ["CLAUDE_PROJECT_DIR"], "logs")
os.makedirs(path, exist_ok=True)
with open(os.path.join(path, "pre_tool_use.json"), "a") as f:
    f.write(json.dumps(data) + "\\n")
print(json.dumps(data))
`,
    cases: [['no opinion', bash('ls'), none]],
  },
  {
    title: 'a Python script that crashes',
    event: 'PreToolUse',
    file: 'crash.py',
    command: 'python3 FILE',
    source: 'import json, sys\njson.load(sys.stdin)["no_such_key"]\n',
    cases: [['the action proceeds', bash('rm -rf /'), none]],
  },
  {
    title: 'a script of uv on a machine without it',
    event: 'PreToolUse',
    file: 'uv.py',
    command: 'uv-is-not-here run --script FILE',
    source: '# /// script\n# requires-python = ">=3.11"\n# ///\nimport sys\nsys.exit(2)\n',
    cases: [['the action proceeds', bash('ls'), none]],
  },
  {
    title: 'a script in node that answers instead of a person',
    event: 'PermissionRequest',
    file: 'permit.js',
    command: 'node FILE',
    source: `
const { tool_name, tool_input } = JSON.parse(require('fs').readFileSync(0, 'utf8'))
const decision = tool_name === 'Read' ? { behavior: 'allow' }
  : /sudo/.test(tool_input.command ?? '') ? { behavior: 'deny', message: 'no sudo', interrupt: false } : undefined
if (decision) console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: 'PermissionRequest', decision } }))
`,
    cases: [
      ['reading is allowed', file('Read', '/a'), { decision: 'allow' }],
      ['sudo is denied', bash('sudo ls'), { decision: 'deny', reason: 'no sudo' }],
      ['anything else is left to a person', bash('ls'), none],
    ],
  },
  {
    title: 'a bash script that guards the order of test and code',
    event: 'PreToolUse',
    file: 'tdd.sh',
    command: 'bash FILE',
    source: `#!/bin/bash
file=$(jq -r '.tool_input.file_path // ""')
if [[ "$file" == */src/* && ! -e "\${file%.ts}.test.ts" ]]; then
  echo "Write the test first: \${file%.ts}.test.ts" >&2
  exit 2
fi
`,
    cases: [
      [
        'without a test',
        file('Write', '/p/src/a.ts'),
        { decision: 'deny', reason: 'Write the test first: /p/src/a.test.ts' },
      ],
      ['elsewhere', file('Write', '/p/docs/a.md'), none],
    ],
  },
  {
    title: 'a script that keeps the transcript before it is summed up',
    event: 'PreCompact',
    file: 'backup.sh',
    command: 'bash FILE',
    source: `#!/bin/bash
input=$(cat)
cp "$(jq -r .transcript_path <<< "$input")" "$CLAUDE_PROJECT_DIR/backup.jsonl" || exit 1
[ "$(jq -r .trigger <<< "$input")" = manual ] && { echo "not by hand" >&2; exit 2; }
exit 0
`,
    cases: [
      ['by itself', { trigger: 'auto', custom_instructions: '' }, none],
      ['by hand', { trigger: 'manual', custom_instructions: '' }, { decision: 'block', reason: 'not by hand' }],
    ],
  },
  {
    title: 'a script of a subagent that wants more',
    event: 'SubagentStop',
    file: 'subagent.py',
    command: 'python3 FILE',
    source: `import json, sys
event = json.load(sys.stdin)
if not event.get("stop_hook_active") and "unfinished" in event.get("last_assistant_message", ""):
    print("Something is unfinished.", file=sys.stderr)
    sys.exit(2)
`,
    cases: [
      [
        'a block',
        { agent_type: 'x', last_assistant_message: 'unfinished: y' },
        { decision: 'block', reason: 'Something is unfinished.' },
      ],
      ['nothing', { agent_type: 'x', last_assistant_message: 'All done' }, none],
    ],
  },
  {
    title: 'a loop that reads its state and the transcript, and goes on until a word was said',
    event: 'Stop',
    file: 'loop.sh',
    command: 'bash FILE',
    source: `#!/bin/bash
set -euo pipefail
input=$(cat)
mkdir -p .claude && echo 'Build it.' > .claude/loop.md
said=$(jq -rs 'map(select(.type == "assistant")) | last | .message.content[0].text // ""' "$(jq -r .transcript_path <<< "$input")")
said=\${said:-$(jq -r '.last_assistant_message // ""' <<< "$input")}
if [[ "$said" == *DONE* ]]; then echo "The loop has ended."; exit 0; fi
jq -n --arg task "$(cat .claude/loop.md)" '{decision: "block", reason: $task, systemMessage: "Once more"}'
`,
    cases: [
      ['goes on', {}, { decision: 'block', reason: 'Build it.', systemMessage: 'Once more' }],
      ['ends', { last_assistant_message: 'DONE' }, none],
    ],
  },
  {
    title: 'a Python script that denies in a message to the user, and logs in brackets',
    event: 'PreToolUse',
    file: 'rules.py',
    command: 'python3 FILE',
    source: `import json, sys
command = json.load(sys.stdin).get("tool_input", {}).get("command", "")
if "rm -rf" not in command:
    print("[rules] fine")
    sys.exit(0)
print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}, "systemMessage": "Careful!"}))
`,
    cases: [
      ['denies', bash('rm -rf x'), { decision: 'deny', systemMessage: 'Careful!' }],
      ['has no opinion', bash('ls'), none],
    ],
  },
]
