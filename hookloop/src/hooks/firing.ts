import type { AgentState } from '../data/agent-state.ts'
import type { ContinuationEvaluation } from '../data/continuation.ts'
import type { Ask } from '../data/tool-call.ts'
import type { AgentError } from '../errors.ts'
import { contextClassOf } from './context-classes.ts'
import type { Context, Draft, FactBag, HookHost, Mode, Origin, Recovery, Vote } from './draft.ts'
import type { HookOutcome } from './outcome.ts'
import type { HookTrigger } from './triggers.ts'

const noVotes: readonly Vote[] = Object.freeze([])

/**
 * One event at one trigger, from the first hook to the last observer: the value as it stands and everything that was
 * decided. It lives as long as the firing and is never written down.
 */
export class Firing implements Origin {
  readonly host: HookHost
  readonly trigger: HookTrigger
  /** The tool call this is about, as a place for keys. */
  readonly callIndex: number | undefined
  readonly callId: string | undefined
  draft: Draft
  readonly votes: ContinuationEvaluation[] = []
  readonly asks: Ask[] = []
  blocked: { readonly by: string; readonly message: string } | undefined
  allowed: { readonly by: string; readonly message: string } | undefined
  recovery: (Recovery & { readonly by: string }) | undefined
  /** Set when a hook failed and the value must not be used. */
  failure: AgentError | undefined
  /** What hooks with an effect did in this firing: when it is tried again, they are not. */
  readonly performed = new Map<string, HookOutcome>()
  /** At `beforeToolUse`: whether the arguments fit the tool, for hooks that are typed by it. */
  fits: (() => boolean | Promise<boolean>) | undefined
  #context: Context | undefined
  #mode: Mode | undefined

  constructor(
    host: HookHost,
    trigger: HookTrigger,
    state: AgentState,
    facts: FactBag,
    call?: { readonly index: number; readonly id: string },
  ) {
    this.host = host
    this.trigger = trigger
    this.callIndex = call?.index
    this.callId = call?.id
    this.draft = { state, facts, votes: noVotes, verdict: undefined, recovery: undefined }
  }

  get state(): AgentState {
    return this.draft.state
  }

  get facts(): FactBag {
    return this.draft.facts
  }

  get forbidden(): boolean {
    return this.votes.some((vote) => vote.decision === 'forbidContinuation')
  }

  /** The key of an effect that a hook performs in this firing. */
  keyFor(hook: string): string {
    const call = this.callIndex === undefined ? '' : `/${this.callIndex}`
    return `${this.host.place}${call}/${this.trigger}/${hook}`
  }

  /** The context for the next hook. It is the same object as long as nothing changes. */
  context(mode: Mode): Context {
    if (this.#context === undefined || this.#mode !== mode) {
      this.#context = new (contextClassOf(this.trigger, mode))(this, this.draft)
      this.#mode = mode
    }
    return this.#context
  }

  /** Goes on with other values, and without the decisions of the hook before. */
  update(state: AgentState, facts: FactBag): void {
    this.draft = { state, facts, votes: noVotes, verdict: undefined, recovery: undefined }
    this.#context = undefined
  }
}
