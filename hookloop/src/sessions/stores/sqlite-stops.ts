import type { DatabaseSync } from 'node:sqlite'
import type { StopRequest } from '../../state/stop-request.ts'
import { readStop } from './store.ts'

/**
 * The requests to stop runs. A request is made while a session has a lock number and counts as long as it has that number: the
 * next owner of the lock takes it over if the run is open. So a request that an older version has not deleted does not count.
 */
export class StopTable {
  readonly #insert
  readonly #take
  readonly #delete
  readonly #select

  constructor(database: DatabaseSync) {
    this.#insert = database.prepare(
      `INSERT INTO stops (session, epoch, request) VALUES (:key, :epoch, :request) ON CONFLICT (session) DO UPDATE
       SET epoch = excluded.epoch, request = excluded.request WHERE stops.epoch <> excluded.epoch`,
    )
    this.#take = database.prepare(
      'UPDATE stops SET epoch = epoch + 1 WHERE session = :key AND epoch = :epoch RETURNING request',
    )
    this.#delete = database.prepare('DELETE FROM stops WHERE session = ?')
    this.#select = database.prepare(
      'SELECT id, request FROM stops JOIN sessions ON key = session WHERE stops.epoch = sessions.epoch',
    )
  }

  /** Stores a request, unless there is one. */
  add({ key, epoch }: { readonly key: number; readonly epoch: number }, request: StopRequest): void {
    this.#insert.run({ key, epoch, request: JSON.stringify(request) })
  }

  /** Takes over the request that was made under the lock before, if the run is open. */
  take({ key, epoch }: { readonly key: number; readonly epoch: number }, isOpen: boolean): StopRequest | undefined {
    const found = isOpen ? this.#take.get({ key, epoch }) : undefined
    if (found === undefined) this.delete(key)
    return found && readStop(String(found['request']))
  }

  delete(key: number): void {
    this.#delete.run(key)
  }

  /** All requests, by session. There are few. */
  read(): ReadonlyMap<string, StopRequest> {
    const rows = this.#select.all() as { id: string; request: string }[]
    return new Map(
      rows.flatMap(({ id, request: text }) => {
        const request = readStop(text)
        return request === undefined ? [] : [[id, request]]
      }),
    )
  }
}
