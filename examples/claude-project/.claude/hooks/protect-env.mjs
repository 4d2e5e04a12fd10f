// A decision in JSON, with a reason.
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

const { tool_input: input } = JSON.parse(readFileSync(0, 'utf8'))
if (basename(input.file_path).startsWith('.env')) {
  const decision = {
    permissionDecision: 'deny',
    permissionDecisionReason: `${basename(input.file_path)} holds secrets.`,
  }
  console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: 'PreToolUse', ...decision } }))
}
