import { textOf, type Message } from '../state/message.ts'
import type { HookHost } from '../hooks/hook-host.ts'
import type { SlashCommand } from './capability.ts'
import { RunContext } from '../context/run-context.ts'
import type { AgentParts } from './agent-parts.ts'

const COMMAND = /^\/([A-Za-z0-9][\w-]{0,63})(?:\s+([^]*))?$/

/** A command as it was typed: the name after the slash, and the arguments. */
export type TypedCommand = { readonly name: string; readonly given: string }

/** Parses `/name arguments`. Undefined for any other input, and for messages that contain more than text. */
export function typedCommand({ content }: Message): TypedCommand | undefined {
  if (content.some((part) => part.type !== 'text')) return undefined
  const [, name, given = ''] = COMMAND.exec(textOf(content).trim()) ?? []
  return name === undefined ? undefined : { name, given: given.trim() }
}

export function isCommandName(name: string): boolean {
  return COMMAND.exec(`/${name}`)?.[1] === name
}

/** The commands of an agent. Of two with the same name, the first applies. */
export function slashCommandsOf({ capabilities }: Pick<AgentParts, 'capabilities'>): readonly SlashCommand[] {
  const all = capabilities.flatMap(({ slashCommands = [] }) => slashCommands)
  return all.filter(({ name }, i) => all.findIndex((other) => other.name === name) === i)
}

/** The command of the running agent that an input stands for, if it is one. */
export function commandIn(host: HookHost, input: Message): (SlashCommand & TypedCommand) | undefined {
  const typed = typedCommand(input)
  if (typed === undefined || !(host instanceof RunContext)) return undefined
  const command = slashCommandsOf(host.parts).find(({ name }) => name === typed.name)
  return command && { ...command, ...typed }
}
