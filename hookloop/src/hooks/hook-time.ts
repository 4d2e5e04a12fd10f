import type { AgentError } from '../errors.ts'
import type { TimeLimit } from '../effects/effects.ts'
import { timeLimitOf, type Invocation } from './invocation.ts'
import type { StackedHook } from './stack.ts'

/** The time limit of a hook in an invocation. */
export class HookTime implements TimeLimit {
  readonly invocation: Invocation
  readonly hook: StackedHook

  constructor(invocation: Invocation, hook: StackedHook) {
    this.invocation = invocation
    this.hook = hook
  }

  get ms(): number {
    const { action } = this.hook
    return action !== undefined && action.asks !== true ? Infinity : timeLimitOf(this.hook) // an action enforces its own
  }

  key(): string {
    return `${this.invocation.keyFor(this.hook.name)}/timeout`
  }

  abort(error: AgentError): void {
    this.invocation.abort(error)
  }
}
