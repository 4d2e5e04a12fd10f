import type { Message } from '../state/message.ts'
import type { Infers } from './infer.ts'

/** How to compact a conversation. */
export type CompactOptions = {
  /** How many of the latest messages to keep; more if a call would be separated from its result. */
  readonly keep: number
  /** Messages to keep wherever they are, with their calls or results. Default none. */
  readonly pin?: (message: Message) => boolean
  /** Whether it was requested explicitly. Hooks see this. Default false. */
  readonly requested?: boolean
  /** Writes the summary of the other messages. If it fails, the conversation does not change. */
  readonly summarize: (ctx: SummaryContext) => string | Promise<string>
}

/** The argument of `summarize`. */
export type SummaryContext = {
  /** Calls a model, in the name of the hook that requested the compaction. */
  readonly infer: Infers['infer']
  /** The messages to summarize, as changed by hooks at `beforeCompaction`. An earlier summary is the first of them. */
  readonly messages: readonly Message[]
  readonly signal: AbortSignal
}
