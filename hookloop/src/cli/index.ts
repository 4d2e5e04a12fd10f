import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { AgentError, messageOf } from '../errors.ts'
import { colorsFor } from './colors.ts'
import { commandName } from './command-name.ts'
import { exitCodes, exitCodeTable, type ExitCode } from './exit-codes.ts'
import { models } from './models.ts'
import type { PolicyFlags } from './policy.ts'
import { printable } from './printable.ts'
import { run, type Place, type RunFlags } from './run.ts'
import { UsageError } from './usage-error.ts'

/** Does what the command line says, and gives the exit code. Everything is written when it resolves. */
export async function main(argv: readonly string[]): Promise<ExitCode> {
  const { stdin, stdout: out, stderr: err, env } = process
  const place: Place = { stdin, out, err, env, command: commandName(process.argv[1], env) }
  for (const stream of [out, err]) stream.on('error', () => undefined) // who reads them may leave; a run notices
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

function commandLine(place: Place, done: (code: ExitCode) => void): Command {
  const { bold } = colorsFor(place.out, place.env)
  const program = new Command('hookloop')
    .description('Runs agents whose every decision is a hook’s.')
    .version(version(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .configureHelp({ styleTitle: bold })
    .exitOverride()
    .addHelpText('after', `\nBegin with:\n  ${place.command} models\n  ${place.command} run --help`)
  program
    .command('models')
    .description('list providers: what is installed, which keys are set, what to type')
    .option('--json', 'print it as JSON')
    .action(async ({ json = false }: { json?: boolean }) => done(await models({ ...place, json })))
  addRunOptions(program.command('run'))
    .addHelpText('after', `\n${examples(place.command)}\n\n${bold('Exit codes:')}\n${exitCodeWords()}`)
    .action(async (words: string[], flags: RunFlags) => done(await run(words, flags, place)))
  const policy = program.command('policy').description('check a policy before it is trusted')
  addPolicyOptions(policy.command('bash'))
    .addHelpText('after', `\nExample:\n  echo 'git log | head' | ${place.command} policy bash --allow 'git log,head'`)
    .action(async (flags: PolicyFlags) => {
      const { policyBash } = await import('./policy.ts') // no other command needs a shell grammar
      done(await policyBash(flags, place))
    })
  return program
}

function addPolicyOptions(command: Command): Command {
  return command
    .description('say what the bash tool would do about each command on stdin; runs none of them')
    .option('--allow <rules>', 'what may run, with commas between; may be repeated', collect)
    .option('--deny <rules>', 'what may not, wherever it stands; may be repeated', collect)
    .option('--ask <rules>', 'what a person decides; may be repeated', collect)
    .option('--json', 'print a line of JSON for each command')
}

function addRunOptions(command: Command): Command {
  return command
    .description('run an agent, and show what it does')
    .argument('[input...]', 'what to say; "-" or a pipe reads it from stdin')
    .option('-m, --model <name>', 'provider/model (default: the one of the agent, or HOOKLOOP_MODEL)')
    .option('-a, --agent <file>', 'a module whose default export is an agent, or the options of createAgent')
    .option('-s, --system <text>', 'the system prompt')
    .option('-f, --file <path>', 'an image, a document or a text to send along; may be repeated', collect)
    .option('--temperature <number>', 'how freely it words things', numberFrom(0))
    .option('--max-steps <n>', 'steps at most (default: 20)', wholeNumber)
    .option('--max-tokens <n>', 'tokens at most, in and out (default: 32768)', wholeNumber)
    .option('--max-time <seconds>', 'seconds at work at most (default: 300)', numberFrom(0))
    .option('--max-cost <dollars>', 'US dollars at most', numberFrom(0))
    .option('--no-stream', 'wait for the whole answer')
    .option('--explain', 'say at the end who decided what, and why')
    .addOption(new Option('-q, --quiet', 'print only the answer').conflicts('json'))
    .option('--json', 'print every event, and at last the result, as lines of JSON')
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

function wholeNumber(text: string): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isSafeInteger(value) && value >= 1) return value
  throw new InvalidArgumentError('It must be a whole number from 1 up.')
}

function numberFrom(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (text.trim() !== '' && Number.isFinite(value) && value >= least) return value
    throw new InvalidArgumentError(`It must be a number from ${least} up.`)
  }
}

function examples(command: string): string {
  return [
    'Examples:',
    `  ${command} run "Why is the sky blue?" --model ollama/llama3.2`,
    `  git diff | ${command} run "Review this" --model anthropic/claude-sonnet-5-5 --quiet`,
    `  ${command} run "Repair the build" --agent agent.ts --max-cost 0.50 --explain`,
  ].join('\n')
}

function exitCodeWords(): string {
  return exitCodeTable.map(([code, meaning]) => `  ${String(code).padEnd(4)} ${meaning}`).join('\n')
}

function version(): string {
  const file = fileURLToPath(import.meta.resolve('hookloop/package.json'))
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version
}
