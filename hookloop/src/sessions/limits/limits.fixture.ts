import type { AgentState } from '../../core/state/agent-state.ts'
import type { LanguageModel, ModelReply } from '../../core/state/inference.ts'
import type { Json } from '../../values/json.ts'
import { textOf } from '../../core/state/message.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'

/** A model whose calls wait until the test answers them, by the text of the first message. */
export type GatedModel = LanguageModel & {
  /** The calls that wait, in order. */
  readonly open: readonly string[]
  /** Resolves when so many calls have been started. */
  started(count: number): Promise<void>
  answer(name: string, reply?: Partial<ModelReply> | Error): void
}

export function gatedModel(modelId = 'gated'): GatedModel {
  const calls: { readonly name: string; readonly reply: PromiseWithResolvers<ModelReply> }[] = []
  const all: string[] = []
  let news = Promise.withResolvers<void>()
  return {
    provider: 'test',
    modelId,
    infer(request, { signal }) {
      const name = textOf(request.messages.at(0)!.content)
      const reply = Promise.withResolvers<ModelReply>()
      signal?.addEventListener('abort', () => reply.reject(signal.reason))
      calls.push({ name, reply })
      all.push(name)
      news.resolve()
      news = Promise.withResolvers()
      return reply.promise
    },
    get open() {
      return calls.map(({ name }) => name)
    },
    async started(wanted) {
      while (all.length < wanted) await news.promise
    },
    answer(name, reply = {}) {
      const [call] = calls.splice(
        calls.findIndex((each) => each.name === name),
        1,
      )
      if (reply instanceof Error) return call!.reply.reject(reply)
      const usage = { inputTokens: 400, outputTokens: 600 }
      call!.reply.resolve({ content: [{ type: 'text', text: 'ok' }], finishReason: 'stop', usage, ...reply })
    },
  }
}

/** A store with a clock of its own. */
export type ClockedStore = SessionStore & { now: number; updates: number }

export function clockedStore(store: SessionStore = memoryStore()): ClockedStore {
  const clocked: ClockedStore = {
    ...store,
    now: 1_000_000,
    updates: 0,
    update(name, change) {
      clocked.updates++
      return store.update(name, (value) => change(value, clocked.now))
    },
  }
  return clocked
}

export function valueOf(store: SessionStore, name: string): Promise<Json> {
  return store.update(name, (value) => value ?? {})
}

export function userOf(state: AgentState): string {
  return `user ${state.metadata['user'] as string}`
}

/** A store that must not be used. */
export const unusable: SessionStore = {
  ...memoryStore(),
  update: () => Promise.reject(new Error('the store was used')),
}
