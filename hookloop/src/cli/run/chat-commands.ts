import { nearestName } from '../../values/nearest-name.ts'
import type { Conversation } from './conversation.ts'

type ChatCommand = {
  readonly args?: string
  readonly summary: string
  readonly run: (conversation: Conversation, argument: string) => string | Promise<string>
}

const commands: { readonly [name: string]: ChatCommand } = {
  '/help': { summary: 'list commands', run: help },
  '/clear': {
    summary: 'clear the messages; the state of capabilities stays',
    run: async (conversation) => {
      await conversation.clear()
      return 'Cleared.'
    },
  },
  '/compact': {
    summary: 'summarize the conversation with your next message',
    run: async (conversation) => {
      if (!conversation.hasRun) return 'There are no messages yet.'
      if (await conversation.compact()) return 'The conversation will be summarized with your next message.'
      return 'This agent cannot summarize: it has no summarization().'
    },
  },
  '/model': {
    args: '[name]',
    summary: 'show the model, or switch to another one',
    run: async (conversation, name) => {
      if (name !== '') await conversation.changeModel(name)
      return `The model is ${await conversation.model()}.`
    },
  },
  '/fork': {
    summary: 'continue in a copy of this session',
    run: async (conversation) => {
      if (!conversation.hasRun) return 'There are no messages yet.'
      const from = conversation.ref.session
      return `This is now ${await conversation.fork()}; ${from} does not change.`
    },
  },
  '/explain': {
    args: '[verbose]',
    summary: 'explain which hook decided what in the last run, and why',
    run: (conversation, argument) => conversation.explain(argument === 'verbose' || undefined),
  },
  '/exit': { summary: 'exit, like Ctrl-D', run: () => '' },
}

/** Completions for the tab key. */
export function commandNames(conversation: Conversation): readonly string[] {
  return [...Object.keys(commands), ...conversation.slashCommands.map(({ name }) => `/${name}`)]
}

/** Whether a line is for the agent: also a slash command of the agent that `chat` does not have itself. */
export function isMessage(line: string, conversation: Conversation): boolean {
  const [, name] = /^\/(\S*)/.exec(line) ?? []
  if (name === undefined) return true
  return !Object.hasOwn(commands, `/${name}`) && conversation.slashCommands.some((command) => command.name === name)
}

export function isExit(line: string): boolean {
  return /^\/(exit|quit)\s*$/.test(line)
}

/** Runs a line that starts with a slash, and returns the text to print. */
export async function runChatCommand(line: string, conversation: Conversation): Promise<string> {
  const [, name = '', argument = ''] = /^(\S+)\s*(.*)$/s.exec(line) ?? []
  if (!Object.hasOwn(commands, name)) {
    const nearest = nearestName(name, commandNames(conversation))
    const hint = nearest === undefined ? '' : ` Did you mean ${nearest}?`
    return `Unknown command ${name}.${hint} Type /help for a list. Put a blank first to send a message that starts with a slash.`
  }
  return commands[name]!.run(conversation, argument.trim())
}

function help({ slashCommands }: Conversation): string {
  const own = Object.entries(commands)
    .map(([name, { args = '', summary }]) => `  ${`${name} ${args}`.padEnd(18)} ${summary}`)
    .concat('  Ctrl-C cancels a run; press it twice to exit. End a line with \\ to continue it on the next line.')
  const ofAgent = slashCommands
    .filter(({ name }) => !Object.hasOwn(commands, `/${name}`))
    .map(({ name, description, source }) => `  ${`/${name}`.padEnd(18)} ${description || '–'} (${source})`)
  return [...own, ...(ofAgent.length === 0 ? [] : ['Commands that send a prompt to the model:', ...ofAgent])].join('\n')
}
