import { bash, file, none, type PublicScript } from './public-script.fixture.ts'

/** Scripts for the end of a turn, approvals and other events. */
export const otherScripts: readonly PublicScript[] = [
  {
    title: 'a bash script that prevents the stop until the tests pass, once',
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
    title: 'a script that sends a notification',
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
    title: 'a Node script that answers a permission request',
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
      ['other calls are left to the approver', bash('ls'), none],
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
      ['other folders', file('Write', '/p/docs/a.md'), none],
    ],
  },
  {
    title: 'a script that copies the transcript before a compaction',
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
    title: 'a script that continues a subagent',
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
    title: 'a loop that reads its state and the transcript, and continues until a word was said',
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
      ['continues', {}, { decision: 'block', reason: 'Build it.', systemMessage: 'Once more' }],
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
