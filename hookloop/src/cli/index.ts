import { basename, relative } from 'node:path'
import { CommanderError } from 'commander'
import { AgentError, messageOf } from '../errors.ts'
import type { Environment } from '../models/providers.ts'
import { colorsFor } from './terminal/colors.ts'
import type { CliContext } from './cli-context.ts'
import { redirectConsole } from './terminal/redirect-console.ts'
import { exitCodes, type ExitCode } from './exit-codes.ts'
import { printable } from './terminal/printable.ts'
import { commands } from './commands.ts'
import { createProgram } from './program.ts'
import { UsageError } from './usage-error.ts'

/** Runs the command line of this process and returns its exit code. All output is flushed when it resolves. */
export async function main(argv: readonly string[]): Promise<ExitCode> {
  const { stdin, stdout: out, stderr: err, env } = process
  let lost: NodeJS.ErrnoException | undefined
  out.on('error', (error) => void (lost ??= error))
  err.on('error', () => undefined)
  const code = await runCli(argv, { stdin, out, err, env, command: commandName(process.argv[1], env) })
  await written(out)
  // A reader that has gone wants no more; a run handles that. But a file with half of the output is a failure.
  const isLost = lost !== undefined && lost.code !== 'EPIPE' && code === exitCodes.completed
  if (isLost) err.write(`error: The output cannot be written: ${lost!.message}\n`)
  await written(err)
  return isLost ? exitCodes.failed : code
}

function written(stream: NodeJS.WriteStream): Promise<unknown> {
  return new Promise((resolve) => stream.write('', resolve))
}

/** What the user typed to start the program, so that printed command lines can be copied and pasted. */
function commandName(script: string | undefined, env: Environment): string {
  if (env['npm_command'] === 'exec') return 'npx hookloop'
  if (script === undefined || basename(script) === 'hookloop') return 'hookloop'
  const fromCwd = relative(process.cwd(), script)
  const path = fromCwd.length < script.length ? fromCwd : script
  return `node ${/\s/.test(path) ? JSON.stringify(path) : path}`
}

/** Runs a command line and returns the exit code. Errors are written to `err`, never thrown. */
export async function runCli(given: readonly string[], cli: CliContext): Promise<ExitCode> {
  let code: ExitCode = exitCodes.completed
  const [first, ...rest] = given
  const argv = first === 'help' ? helpArguments(rest) : given
  const restoreConsole = redirectConsole((line) => cli.err.write(`${line}\n`))
  try {
    const program = await createProgram(argv, cli, (ended) => void (code = ended))
    await program.parseAsync(argv, { from: 'user' })
    return code
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? exitCodes.completed : exitCodes.usage
    cli.err.write(`${colorsFor(cli.err, cli.env).red('error:')} ${printable(errorText(thrown))}\n`)
    if (thrown instanceof AgentError && thrown.code === 'SESSION_BUSY') return exitCodes.busy
    return isExpected(thrown) ? exitCodes.usage : exitCodes.failed
  } finally {
    restoreConsole()
  }
}

/** `help run` is `run --help`. An unknown command is parsed as it is, which prints an error, and nothing is run. */
function helpArguments(words: readonly string[]): readonly string[] {
  const all = Object.values(commands).flatMap((entries) => entries.map(({ name }) => name))
  const [first = '', second = ''] = words
  const children = all.filter((name) => name.startsWith(`${first} `))
  if (first !== '' && !first.startsWith('-') && !all.includes(first)) return [first]
  const isChild = second === '' || second.startsWith('-') || children.includes(`${first} ${second}`)
  return children.length === 0 || isChild ? [...words, '--help'] : [first, second]
}

/** These are thrown only before a run starts: a run that fails reports its own error. */
function isExpected(thrown: unknown): thrown is UsageError | AgentError {
  return thrown instanceof UsageError || thrown instanceof AgentError
}

function errorText(thrown: unknown): string {
  if (isExpected(thrown)) return thrown.message
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : messageOf(thrown)
}
