import { Command } from 'commander'
import type { CliContext } from './cli-context.ts'
import type { CommandDefinition } from './command.ts'
import { commands } from './commands.ts'
import { exitCodes, type ExitCode } from './exit-codes.ts'
import { nearestName } from '../values/nearest-name.ts'
import { colorsFor } from './terminal/colors.ts'
import { version } from './version.ts'
import { printable } from './terminal/printable.ts'

const HELP_WIDTH = 100

/** The parser of a command line. Only the command it calls is loaded. `onExit` receives its exit code. */
export async function createProgram(
  argv: readonly string[],
  cli: CliContext,
  onExit: (code: ExitCode) => void,
): Promise<Command> {
  const { out, err, env } = cli
  const program = new Command('hookloop')
    .description('Run AI agents with hooks; inspect, resume and replay their sessions.')
    .usage('<command> [options]')
    .version(version(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand(false) // runCli() turns `help run` into `run --help`
    .configureHelp({ styleTitle: colorsFor(out, env).bold })
    .configureOutput({
      writeOut: (text) => void out.write(text),
      writeErr: (text) => void err.write(text),
      outputError: (text, write) => write(printable(text).replace(/^error:/, colorsFor(err, env).red)),
      getOutHelpWidth: () => out.columns ?? HELP_WIDTH,
      getErrHelpWidth: () => err.columns ?? HELP_WIDTH,
      getOutHasColors: () => true, // colorsFor() has decided
      getErrHasColors: () => true,
    })
    .enablePositionalOptions() // so that a value such as --system "--version" is not read as an option
    .exitOverride()
    .addHelpText('after', `\nRun "${cli.command} <command> --help" for the options and examples of a command.`)
  for (const [heading, entries] of Object.entries(commands)) {
    for (const { name, summary, load } of entries) {
      const [parentName, childName] = name.split(' ') as [string, string?]
      const parent = childName === undefined ? program : program.commands.find((each) => each.name() === parentName)!
      const command = parent
        .command(childName ?? parentName)
        .description(summary)
        .helpCommand(false)
        .allowExcessArguments(false) // a subcommand would inherit it from its parent
      if (parent === program) command.helpGroup(heading)
      if (load !== undefined && isCalled(name, argv)) configure(command, (await load()).command, { cli, onExit })
      if (entries.some((each) => each.name.startsWith(`${name} `))) rejectUnknown(command)
    }
  }
  return program
}

/** A word after a command that has subcommands is the name of one. */
function rejectUnknown(parent: Command): void {
  parent.allowExcessArguments().hook('preAction', (_parent, called) => {
    const [word] = called === parent ? parent.args : []
    if (word === undefined) return
    const nearest = nearestName(
      word,
      parent.commands.map((each) => each.name()),
    )
    const hint = nearest === undefined ? '' : `\n(Did you mean ${nearest}?)`
    parent.error(`error: unknown command '${word}' of ${parent.name()}${hint}`, {
      code: 'commander.unknownCommand',
    })
  })
}

/** Options may stand between the words of a subcommand. */
function isCalled(name: string, argv: readonly string[]): boolean {
  const [first, ...rest] = argv.filter((word) => !word.startsWith('-'))
  const [parent, child] = name.split(' ')
  return parent === first && (child === undefined || rest.includes(child))
}

type Running = { readonly cli: CliContext; readonly onExit: (code: ExitCode) => void }

function configure(command: Command, definition: CommandDefinition, { cli, onExit }: Running): void {
  const { description, examples, notes = '' } = definition
  const lines = examples.map((line) => `\n  ${line.replaceAll('hookloop ', `${cli.command} `)}`)
  const run = definition.run as (...args: unknown[]) => ReturnType<CommandDefinition['run']>
  definition
    .configure(command)
    .description(description)
    .addHelpText(
      'after',
      `\n${colorsFor(cli.out, cli.env).bold('Examples:')}${lines.join('')}${notes && `\n\n${notes}`}`,
    )
    .action(async (...args: unknown[]) => onExit((await run(...args.slice(0, -1), cli)) ?? exitCodes.completed))
}
