import type { AgentEvent, Emit } from '../../state/event.ts'
import type { Json } from '../../state/json.ts'
import type { AgentPlace } from '../../state/subagent.ts'
import type { Effect, Effects } from '../../effects/effects.ts'

/**
 * The effects of a subagent: a scope of its parent's, so that whatever it does is recorded, replayed and kept like
 * anything else in the run. Its state is not kept, because the run is one: what it did since its parent's was is.
 */
export class ChildEffects implements Effects {
  readonly inner: Effects
  readonly emit: Emit | undefined

  constructor(inner: Effects, emit: Emit | undefined) {
    this.inner = inner
    this.emit = emit
  }

  get signal(): AbortSignal {
    return this.inner.signal
  }

  perform<T extends Json>(effect: Effect, run: (signal: AbortSignal) => T | Promise<T>): T | Promise<T> {
    return this.inner.perform(effect, run)
  }

  withTimeout<T>(key: string, ms: number, work: PromiseLike<T>): Promise<T> {
    return this.inner.withTimeout(key, ms, work)
  }

  sleep(key: string, ms: number): Promise<void> {
    return this.inner.sleep(key, ms)
  }

  scope(name: string): Effects {
    return this.inner.scope(name)
  }

  join(scope: Effects): void {
    this.inner.join(scope)
  }

  cancelled(): boolean {
    return this.inner.cancelled()
  }

  now(): number {
    return this.inner.now()
  }

  newId(): string {
    return this.inner.newId()
  }
}

/** Tells what a subagent says to those who listen to its parent, with the way to it. */
export function emitFrom(place: AgentPlace, emit: Emit | undefined): Emit | undefined {
  return (
    emit &&
    ((event: AgentEvent) =>
      event.type === 'subagent'
        ? emit({ ...event, path: [place, ...event.path] })
        : emit({ type: 'subagent', path: [place], event }))
  )
}
