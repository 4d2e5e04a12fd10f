import { estimateTokens } from '../../agent/model/estimate-usage.ts'
import type { FoldCache, List } from '../../state/list.ts'
import type { Message } from '../../state/message.ts'

type Sum = { readonly all: number; readonly pinned: number }

const nothing: Sum = { all: 0, pinned: 0 }

/**
 * Weighs messages, each once: they never change. A conversation that has grown is weighed at the cost of what is new in
 * it, so that a step costs the same however long the run is.
 */
export class Scale {
  readonly #count: (message: Message) => number
  readonly #pin: ((message: Message) => boolean) | undefined
  readonly #weights = new WeakMap<Message, number>()
  readonly #sums: FoldCache<Message, Sum> = new WeakMap()

  constructor(options: {
    readonly countTokens?: (message: Message) => number
    readonly pin?: (message: Message) => boolean
  }) {
    this.#count = options.countTokens ?? (({ content }) => estimateTokens(content))
    this.#pin = options.pin
  }

  weigh(message: Message): number {
    const known = this.#weights.get(message)
    if (known !== undefined) return known
    const count = this.#count(message)
    const weight = count >= 0 && count < Infinity ? count : estimateTokens(message.content)
    this.#weights.set(message, weight)
    return weight
  }

  /** The weight of a conversation, and of what is pinned in it. */
  sum(messages: List<Message>): Sum {
    return messages.fold(this.#sums, nothing, (sum, message) => this.#add(sum, message))
  }

  /** How many of the latest messages fit into a budget, at least one, and the weight of what is not pinned before them. */
  part(
    messages: List<Message>,
    { tokens, budget }: { tokens: number; budget: number },
  ): { keep: number; going: number } {
    const whole = this.sum(messages)
    const ratio = whole.all === 0 ? 1 : tokens / whole.all // guesses are off by a factor that is known by now
    let tail = nothing
    let keep = 0
    while (keep < messages.length) {
      const next = this.#add(tail, messages.at(-1 - keep)!)
      if (keep > 0 && next.all * ratio > budget) break
      tail = next
      keep++
    }
    return { keep, going: (whole.all - whole.pinned - (tail.all - tail.pinned)) * ratio }
  }

  #add({ all, pinned }: Sum, message: Message): Sum {
    const weight = this.weigh(message)
    return { all: all + weight, pinned: this.#pin?.(message) === true ? pinned + weight : pinned }
  }
}
