import { messageOf } from '../../errors.ts'
import { sanitizeText } from '../../system/sanitize-text.ts'
import { minimalEnvironment } from '../../system/processes/minimal-environment.ts'
import { runProcess } from '../../system/processes/run-process.ts'
import { splitArguments } from './fill-arguments.ts'

export type CommandLimits = {
  readonly cwd: string
  readonly commandTimeoutMs: number
  readonly maxCommandOutput: number
  readonly maxCommands: number
}

/** Runs one command of a skill and gives what it wrote, or throws. */
export type RunCommand = (
  command: string,
  how: { readonly given: string; readonly folder: string | undefined; readonly signal: AbortSignal },
) => Promise<string>

const COMMAND = /!`([^`\n]+)`/

/** The text of a skill in pieces: text, command, text, … */
export function splitCommands(body: string): readonly string[] {
  return body.split(COMMAND)
}

/**
 * Commands run in a shell with a minimal environment. Arguments are its variables, `$ARGUMENTS` and `$0`, `$1`, …, and never part
 * of the command itself: whatever a model puts into them is not read as shell.
 */
export function commandRunner({ cwd, commandTimeoutMs, maxCommandOutput }: CommandLimits): RunCommand {
  return async (command, { given, folder, signal }) => {
    const result = await runProcess(['/bin/sh', '-c', command, ...splitArguments(given)], {
      cwd,
      env: minimalEnvironment({ ARGUMENTS: given, ...(folder !== undefined && { SKILL_DIR: folder }) }, { cwd }),
      timeoutMs: commandTimeoutMs,
      signal,
      output: { head: maxCommandOutput, tail: 0 },
    })
    if (result.ended === 'timedOut') throw new Error(`it did not end within ${commandTimeoutMs} ms`)
    if (result.ended !== 'exited') throw new Error(result.problem ?? 'it was cancelled')
    const { head, droppedBytes } = result.stdout
    const output = sanitizeText(head).trimEnd() + (droppedBytes > 0 ? `\n[${droppedBytes} more bytes]` : '')
    if (result.exitCode === 0) return output
    const words = sanitizeText(result.stderr.head).trim().slice(0, 500)
    throw new Error(`it ended with ${result.exitCode ?? result.signal}${words === '' ? '' : `: ${words}`}`)
  }
}

/** A command that fails is told to the model in its place; the skill is still of use. */
export async function outputOf(command: string, running: Promise<string>): Promise<string> {
  try {
    return await running
  } catch (thrown) {
    return `[the command ${JSON.stringify(command)} failed: ${messageOf(thrown)}]`
  }
}
