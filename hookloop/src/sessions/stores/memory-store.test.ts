import { storeContract } from '../../testing/store-contract.ts'
import { memoryStore } from './memory-store.ts'
import type { SessionStore } from './store.ts'

const places = new Map<string, SessionStore>()

storeContract('memoryStore', (place) => {
  const store = places.get(place) ?? memoryStore()
  places.set(place, store)
  return store
})
