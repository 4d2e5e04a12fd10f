import type { Conversation } from './conversation.ts'

type Command = {
  /** What follows it, as the help shows it. */
  readonly takes?: string
  readonly does: string
  readonly run: (conversation: Conversation, argument: string) => string | Promise<string>
}

/** What can be typed instead of a message. Each says something in return. */
const commands: { readonly [name: string]: Command } = {
  '/help': { does: 'list these', run: help },
  '/clear': {
    does: 'forget what was said; what it was told by other means stays',
    run: async (conversation) => {
      await conversation.clear()
      return 'Forgotten.'
    },
  },
  '/compact': {
    does: 'have what was said summed up, with your next message',
    run: async (conversation) => {
      if (!conversation.hasBegun) return 'Nothing was said yet.'
      if (await conversation.compact()) return 'What was said is summed up with your next message.'
      return 'This agent sums nothing up: it has no summarization().'
    },
  },
  '/model': {
    takes: '[name]',
    does: 'use another model from now on, or say which one is in use',
    run: async (conversation, name) => {
      if (name !== '') await conversation.changeModel(name)
      return `The model is ${await conversation.model()}.`
    },
  },
  '/fork': {
    does: 'go on in a copy of this session',
    run: async (conversation) => {
      if (!conversation.hasBegun) return 'There is nothing to go on from yet.'
      const from = conversation.way.session
      return `This is ${await conversation.fork()} now; ${from} stays as it is.`
    },
  },
  '/explain': {
    does: 'say who decided what in the last answer, and why',
    run: (conversation) => conversation.explain(),
  },
  '/exit': { does: 'leave, as Ctrl-D does', run: () => '' },
}

/** What the tab key knows. */
export function commandNames(conversation: Conversation): readonly string[] {
  return [...Object.keys(commands), ...conversation.slashCommands.map(({ name }) => `/${name}`)]
}

/** Whether a line is for the agent: also one with a slash, if it has such a command and `chat` has none of that name. */
export function isSaid(line: string, conversation: Conversation): boolean {
  const [, name] = /^\/(\S*)/.exec(line) ?? []
  if (name === undefined) return true
  return !Object.hasOwn(commands, `/${name}`) && conversation.slashCommands.some((command) => command.name === name)
}

export function isExit(line: string): boolean {
  return /^\/(exit|quit)\s*$/.test(line)
}

/** Does what a line that begins with a slash says, and gives the words to show. */
export async function perform(line: string, conversation: Conversation): Promise<string> {
  const [, name = '', argument = ''] = /^(\S+)\s*(.*)$/s.exec(line) ?? []
  if (!Object.hasOwn(commands, name))
    return `There is no ${name}; /help lists what there is. A message that begins with a slash needs a blank before it.`
  return commands[name]!.run(conversation, argument.trim())
}

function help({ slashCommands }: Conversation): string {
  const own = Object.entries(commands)
    .map(([name, { takes = '', does }]) => `  ${`${name} ${takes}`.padEnd(14)} ${does}`)
    .concat('  Ctrl-C cancels an answer, twice it leaves. A line that ends in \\ goes on in the next one.')
  const theirs = slashCommands
    .filter(({ name }) => !Object.hasOwn(commands, `/${name}`))
    .map(({ name, description, source }) => `  ${`/${name}`.padEnd(14)} ${description || '–'} (${source})`)
  return [...own, ...(theirs.length === 0 ? [] : ['These say a text to the model:', ...theirs])].join('\n')
}
