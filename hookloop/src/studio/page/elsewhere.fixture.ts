import { once } from 'node:events'
import { sqliteStore } from '../../sessions/stores/sqlite-store.ts'
import { cleaner } from '../studio.fixture.ts'

// A process that runs an agent in a session, and resumes the run when its input ends.

const [path = '', session = ''] = process.argv.slice(2)
const store = sqliteStore(path)
const agent = cleaner(store)
await agent.run('Clean up the folder, then publish.', { session })
await once(process.stdin.resume(), 'end')
await agent.resume(session)
await store.close()
