import { resolve } from 'node:path'
import type { Capability } from '../../agent/capability.ts'
import { checkOptions, invalidOption } from '../../agent/check-options.ts'
import { typedCommand } from '../../agent/slash-commands.ts'
import { activate } from '../../capabilities/skills/active.ts'
import { fillArguments } from '../../capabilities/skills/fill-arguments.ts'
import { hook, type Hook } from '../../hooks/hook.ts'
import { findCommands, type CommandFile } from './load/find-commands.ts'

export type ClaudeCommandsOptions = {
  /** The project: where `.claude/commands` is. */
  readonly dir: string
  /** Where the user's own `.claude` is; false: it is not read. */
  readonly home?: string | false
}

/** After those of skills: what an agent brings itself goes before a file of the same name. */
const AFTER_SKILLS = 90

/**
 * The commands that a project and its user have for Claude Code: `/name arguments` becomes the text of `name.md`. They are
 * read once, here. The text is said as if the person had typed it: nothing in it is run, and it allows no tool.
 */
export function claudeCommands(options: ClaudeCommandsOptions): Capability {
  checkOptions('claudeCommands', options, ['dir', 'home'])
  if (typeof options.dir !== 'string' || options.dir === '') {
    throw invalidOption('claudeCommands', '"dir" must be the folder of a project', options.dir)
  }
  const { commands, problems } = findCommands(resolve(options.dir), options.home)
  return {
    name: 'claudeCommands',
    hooks: commands.size === 0 ? [] : [expandHook(commands)],
    slashCommands: [...commands.values()].map(({ name, description, source }) => ({ name, description, source })),
    notes: problems,
  }
}

function expandHook(commands: ReadonlyMap<string, CommandFile>): Hook {
  return hook(
    'onUserInput',
    (ctx) => {
      const { name, given } = typedCommand(ctx.input)!
      const text = expanded(commands.get(name)!.body, given)
      // There is no execution yet: it will be the next one. Hooks at the head of the file are in force in it.
      return ctx.withInput(text).withState((state) => activate(state, { name }, state.executionCount + 1))
    },
    {
      name: 'commands.expand',
      priority: AFTER_SKILLS,
      effect: true, // the file may be another one when a record is gone through again
      onFailure: 'block', // what was meant is not what was said
      when: ({ input }) => commands.has(typedCommand(input)?.name ?? ''),
    },
  )
}

/** Lines that Claude Code runs in a shell before it sends the text. */
const SHELL = /!`[^`\n]+`/
/** Who counts from nought says so. */
const FROM_NOUGHT = /\$0(?!\d|[.,]\d)|\$ARGUMENTS\[/

function expanded(body: string, given: string): string {
  const { text, used } = fillArguments(body, given, FROM_NOUGHT.test(body) ? 0 : 1)
  const notes = [
    ...(used || given === '' ? [] : [`ARGUMENTS: ${given}`]),
    ...(SHELL.test(body) ? ['[The commands in this text were not run.]'] : []),
  ]
  return [text, ...notes].join('\n\n')
}
