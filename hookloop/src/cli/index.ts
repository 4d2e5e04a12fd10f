import { CommanderError } from 'commander'
import { AgentError, messageOf } from '../errors.ts'
import { colorsFor } from './terminal/colors.ts'
import { commandLine } from './program.ts'
import { commandName } from './command-name.ts'
import { consoleTo } from './terminal/console.ts'
import { exitCodes, type ExitCode } from './exit-codes.ts'
import type { Place } from './cli-context.ts'
import { printable } from './terminal/printable.ts'
import { UsageError } from './usage-error.ts'

/** Does what the command line says, and gives the exit code. Everything is written when it resolves. */
export async function main(argv: readonly string[]): Promise<ExitCode> {
  const { stdin, stdout: out, stderr: err, env } = process
  const place: Place = { stdin, out, err, env, command: commandName(process.argv[1], env) }
  for (const stream of [out, err]) stream.on('error', () => undefined) // who reads them may leave; a run notices
  consoleTo((line) => err.write(`${line}\n`))
  const code = await perform(argv, place)
  await Promise.all([out, err].map((stream) => new Promise((resolve) => stream.write('', resolve))))
  return code
}

async function perform(argv: readonly string[], place: Place): Promise<ExitCode> {
  let code: ExitCode = exitCodes.completed
  const program = commandLine(place, (ended) => void (code = ended))
  try {
    await program.parseAsync(argv, { from: 'user' })
    return code
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? exitCodes.completed : exitCodes.usage
    place.err.write(`${colorsFor(place.err, place.env).red('error:')} ${printable(wordsFor(thrown))}\n`)
    if (thrown instanceof AgentError && thrown.code === 'SESSION_BUSY') return exitCodes.busy
    return isRefusal(thrown) ? exitCodes.usage : exitCodes.failed
  }
}

/** What is thrown by ourselves was thrown before the run: how a run fails is told by the run. */
function isRefusal(thrown: unknown): thrown is UsageError | AgentError {
  return thrown instanceof UsageError || thrown instanceof AgentError
}

function wordsFor(thrown: unknown): string {
  if (isRefusal(thrown)) return thrown.message
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : messageOf(thrown)
}
