import type { List } from '../state/list.ts'
import type { Message } from '../state/message.ts'
import type { Infers } from './infer.ts'

/** What is to become of a conversation that has grown too long. */
export type CompactOptions = {
  /** How many of the latest messages stay as they are: somewhat more where a call would be parted from its result. */
  readonly keep: number
  /** Messages that stay word for word wherever they stand, with the calls or results that belong to them. */
  readonly pin?: (message: Message) => boolean
  /** Somebody has asked for it, and it is not done because the conversation has grown. Hooks are told. */
  readonly requested?: boolean
  /** Writes the summary that takes the place of the rest. If it fails, the conversation stays as it is. */
  readonly summarize: (ctx: SummaryContext) => string | Promise<string>
}

/** What a summary is made of. */
export type SummaryContext = {
  /** Asks a model, in the name of the hook that wants it shorter. */
  readonly infer: Infers['infer']
  /** What is to be summed up, as hooks at `beforeCompaction` left it; an earlier summary is the first of them. */
  readonly messages: List<Message>
  readonly signal: AbortSignal
}
