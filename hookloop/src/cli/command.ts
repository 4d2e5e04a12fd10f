import type { Command } from 'commander'
import type { ExitCode } from './exit-codes.ts'

/** What a file in `commands/` exports as `command`: its options, its help and the function that runs it. */
export type CommandDefinition = {
  /** One or two sentences for `--help`. */
  readonly description: string
  /** Command lines for `--help`, starting with or containing `hookloop …`. */
  readonly examples: readonly string[]
  /** Text for `--help` after the examples. */
  readonly notes?: string
  /** Declares arguments and options. */
  readonly configure: (command: Command) => Command
  /** Receives the arguments in order, then the options, then the `CliContext`. Without an exit code it has completed. */
  readonly run: (...args: never[]) => ExitCode | void | Promise<ExitCode | void>
}
