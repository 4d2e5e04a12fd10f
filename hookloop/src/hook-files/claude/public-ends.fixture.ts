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
]
