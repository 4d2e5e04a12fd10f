const queues = new Map<string, Promise<unknown>>()

/** Runs work on one path after the other, for all agents of this process. */
export async function oneAtATime<T>(path: string, work: () => Promise<T>): Promise<T> {
  const before = queues.get(path) ?? Promise.resolve()
  const mine = before.then(work, work)
  queues.set(path, mine)
  try {
    return await mine
  } finally {
    if (queues.get(path) === mine) queues.delete(path)
  }
}
