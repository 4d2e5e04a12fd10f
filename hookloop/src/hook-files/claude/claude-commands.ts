import { resolve } from 'node:path'
import type { Capability } from '../../core/agent/capability.ts'
import { checkOptions } from '../../values/check-options.ts'
import { checkExists } from '../../system/files/check-exists.ts'
import { typedCommand } from '../../core/agent/slash-commands.ts'
import { activate } from '../../capabilities/skills/active.ts'
import { fillArguments } from '../../capabilities/skills/fill-arguments.ts'
import { hook, type Hook } from '../../core/hooks/hook.ts'
import { findCommands, type CommandFile } from './load/find-commands.ts'

/** Options of `claudeCommands`. */
export type ClaudeCommandsOptions = {
  /** The project: the folder that contains `.claude/commands`. */
  readonly dir: string
  /** The folder that contains the `.claude` folder of the user. Default: the home folder. `false`: it is not read. */
  readonly home?: string | false
}

/** After skills: a skill overrides a command file with the same name. */
const AFTER_SKILLS = 90

/**
 * The slash commands that a project and its user have for Claude Code: `/name arguments` is replaced by the text of
 * `name.md`. The files are read once. The text counts as user input: commands in it are not run, and it allows no tools.
 *
 * @example
 * createAgent({ model, use: [claudeCommands({ dir: process.cwd() })] })
 */
export function claudeCommands(options: ClaudeCommandsOptions): Capability {
  checkOptions('claudeCommands', options, ['dir', 'home'])
  checkExists('claudeCommands', 'dir', options.dir, 'folder')
  const { commands, problems } = findCommands(resolve(options.dir), options.home)
  return {
    name: 'claudeCommands',
    hooks: commands.size === 0 ? [] : [expandHook(commands)],
    slashCommands: [...commands.values()].map(({ name, description, source }) => ({ name, description, source })),
    notes: problems,
    warnings: problems,
  }
}

function expandHook(commands: ReadonlyMap<string, CommandFile>): Hook {
  return hook(
    'onUserInput',
    (ctx) => {
      const { name, given } = typedCommand(ctx.input)!
      const text = expanded(commands.get(name)!.body, given)
      // Hooks in the front matter of the command apply in the execution that starts now.
      return ctx.withInput(text).withState((state) => activate(state, { name }, state.executionCount + 1))
    },
    {
      name: 'commands.expand',
      bookkeeping: true,
      priority: AFTER_SKILLS,
      effect: true, // the file may have changed when the run is replayed
      onFailure: 'block', // otherwise the model would get the command instead of its text
      when: ({ input }) => commands.has(typedCommand(input)?.name ?? ''),
    },
  )
}

/** Commands that Claude Code runs in a shell before it sends the text. */
const SHELL = /!`[^`\n]+`/
const FROM_ZERO = /\$0(?!\d|[.,]\d)|\$ARGUMENTS\[/

function expanded(body: string, given: string): string {
  const { text, used } = fillArguments(body, given, FROM_ZERO.test(body) ? 0 : 1)
  const notes = [
    ...(used || given === '' ? [] : [`ARGUMENTS: ${given}`]),
    ...(SHELL.test(body) ? ['[The commands in this text were not run.]'] : []),
  ]
  return [text, ...notes].join('\n\n')
}
