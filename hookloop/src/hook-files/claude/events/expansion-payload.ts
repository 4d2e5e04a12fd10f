import { commandIn } from '../../../agent/slash-commands.ts'
import { textOf, type Message } from '../../../state/message.ts'
import { BaseContext } from '../../../hooks/base-context.ts'
import { permissionMode, type Make } from './call-payloads.ts'
import { subagentOf } from './payload.ts'

/** Whether a person has typed a command of the agent. What another agent says is no command of anybody. */
export function isExpansion(ctx: BaseContext): boolean {
  return commandOf(ctx) !== undefined
}

/** What is told of a command before it becomes the text it stands for. */
export function expansionPayload<P>(ctx: BaseContext, made: Make<P>): P | undefined {
  const command = commandOf(ctx)
  if (command === undefined) return undefined
  const { name, given, source } = command
  const input = {
    ...permissionMode,
    expansion_type: 'slash_command',
    command_name: name,
    command_args: given,
    command_source: source,
    prompt: textOf(inputOf(ctx).content),
  }
  return made('UserPromptExpansion', input, name)
}

function commandOf(ctx: BaseContext): ReturnType<typeof commandIn> {
  return subagentOf(ctx.state) === undefined ? commandIn(BaseContext.hostOf(ctx), inputOf(ctx)) : undefined
}

function inputOf(ctx: BaseContext): Message {
  return BaseContext.draftOf(ctx).facts['input'] as Message
}
