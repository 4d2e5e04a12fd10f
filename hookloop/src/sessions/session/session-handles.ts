import type { Session } from '../../agent/session.ts'

const MAX_HANDLES = 1_000

/** The handles of the sessions that a process used last: a handle fires `onSessionStart` once. */
export class SessionHandles<S extends Session<unknown> = Session> {
  readonly #handles = new Map<string, S>()

  get(id: string, open: () => S): S {
    const handle = this.#handles.get(id) ?? open()
    this.#handles.delete(id)
    this.#handles.set(id, handle)
    if (this.#handles.size > MAX_HANDLES) this.#handles.delete(this.#handles.keys().next().value!)
    return handle
  }
}
