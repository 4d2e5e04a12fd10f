import { sqliteStore } from '../sessions/stores/sqlite-store.ts'
import { cleaner } from './studio.fixture.ts'
import { watchSession } from '../sessions/log/watch-session.ts'

// A process of its own that waits for the answer to a question, resumes the session with it, and ends. Arguments: the
// database and the session.

const [path, session] = process.argv.slice(2) as [string, string]
const store = sqliteStore(path)
for await (const event of watchSession(store, session)) {
  if (event.type !== 'answered') continue
  await cleaner(store).resume(session)
  break
}
await store.close()
