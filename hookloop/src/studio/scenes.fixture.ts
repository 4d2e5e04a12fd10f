import { answerApproval, listApprovals } from '../sessions/session/approvals.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import { cleaner, newStore, type Done } from './studio.fixture.ts'

export type Scene = { readonly store: SessionStore; readonly path: string; readonly done: Done }

/** The session `clean-up`, in which the agent waits for an answer about `rm`. */
export async function waiting({ store, path } = newStore(), id = 'clean-up'): Promise<Scene> {
  const done: Done = { models: 0, tools: [] }
  await cleaner(store, done).run('Clean up the folder, then publish.', { session: id })
  return { store, path, done }
}

/** The same, allowed by bob and completed. */
export async function completed(where = newStore(), id = 'clean-up'): Promise<Scene> {
  const scene = await waiting(where, id)
  const asked = (await listApprovals(scene.store)).find(({ session }) => session === id)!
  await answerApproval(scene.store, { session: id, approval: asked.id, answer: 'allow', by: 'bob' })
  await cleaner(scene.store, scene.done).resume(id)
  return scene
}
