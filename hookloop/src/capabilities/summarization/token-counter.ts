import { estimateTokens, type FoldCache, type List, type Message } from '../../plugin.ts'

type Sum = { readonly all: number; readonly pinned: number }

const nothing: Sum = { all: 0, pinned: 0 }

/**
 * Counts the tokens of messages, each once: they never change. Counting a conversation that has grown costs only what is
 * new, so that a step costs the same however long the run is.
 */
export class TokenCounter {
  readonly #count: (message: Message) => number
  readonly #pin: ((message: Message) => boolean) | undefined
  readonly #counts = new WeakMap<Message, number>()
  readonly #sums: FoldCache<Message, Sum> = new WeakMap()

  constructor(options: {
    readonly countTokens: ((message: Message) => number) | undefined
    readonly pin: ((message: Message) => boolean) | undefined
  }) {
    this.#count = options.countTokens ?? (({ content }) => estimateTokens(content))
    this.#pin = options.pin
  }

  count(message: Message): number {
    const known = this.#counts.get(message)
    if (known !== undefined) return known
    const count = this.#count(message)
    const valid = count >= 0 && count < Infinity ? count : estimateTokens(message.content)
    this.#counts.set(message, valid)
    return valid
  }

  /** The tokens of a conversation, and of its pinned messages. */
  sum(messages: List<Message>): Sum {
    return messages.fold(this.#sums, nothing, (sum, message) => this.#add(sum, message))
  }

  /** How many of the latest messages fit into a budget, at least one, and the tokens of unpinned messages before them. */
  split(
    messages: List<Message>,
    { tokens, budget }: { tokens: number; budget: number },
  ): { keep: number; going: number } {
    const total = this.sum(messages)
    const ratio = total.all === 0 ? 1 : tokens / total.all // corrects the estimates by the known total
    let tail = nothing
    let keep = 0
    while (keep < messages.length) {
      const next = this.#add(tail, messages.at(-1 - keep)!)
      if (keep > 0 && next.all * ratio > budget) break
      tail = next
      keep++
    }
    return { keep, going: (total.all - total.pinned - (tail.all - tail.pinned)) * ratio }
  }

  #add({ all, pinned }: Sum, message: Message): Sum {
    const tokens = this.count(message)
    return { all: all + tokens, pinned: this.#pin?.(message) === true ? pinned + tokens : pinned }
  }
}
