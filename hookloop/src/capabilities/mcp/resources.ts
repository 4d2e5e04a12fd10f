import type { FilePart, Message, TextPart } from '../../state/message.ts'
import type { CallOptions, Connection } from './connection.ts'
import { listOf, resourcePart, toParts } from './content.ts'

/** What a resource consists of: texts and files, as parts of a message. */
export async function readResource(
  connection: Connection,
  uri: string,
  options: CallOptions,
): Promise<readonly (TextPart | FilePart)[]> {
  const { contents } = await connection.request('resources/read', { uri }, options)
  return listOf(contents).map(resourcePart)
}

/** A prompt, filled in: the messages a conversation can begin with. */
export async function getPrompt(
  connection: Connection,
  name: string,
  args: { readonly [name: string]: string },
  options: CallOptions,
): Promise<readonly Message[]> {
  const { messages } = await connection.request('prompts/get', { name, arguments: { ...args } }, options)
  return listOf(messages).map(({ role, content }) => ({
    // A prompt speaks as the user or the model. A system message is nobody else's to write.
    role: role === 'assistant' ? 'assistant' : 'user',
    content: toParts(Array.isArray(content) ? content : [content]),
  }))
}
