// Silence is no opinion; other arguments replace the call's.
import { readFileSync } from 'node:fs'

const { tool_input: input } = JSON.parse(readFileSync(0, 'utf8'))
if (input.command.startsWith('npm ')) {
  const updatedInput = { ...input, command: input.command.replace(/^npm /, 'pnpm ') }
  console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: 'PreToolUse', updatedInput } }))
}
