import type { JsonObject } from '../values/json.ts'
import type { Chat, ChatRules } from './chat.ts'

/** A request of a known user. */
export type UserRequest = {
  readonly request: Request
  readonly user: string
  readonly rules: ChatRules
  readonly stream: {
    readonly keepAliveMs: number
    readonly idleMs: number
    readonly showHooks: boolean
  }
  /** A chat of this user, by the id that the client sent. */
  readonly chat: (id: unknown) => Chat
  /** The body, which must be a JSON object. */
  readonly body: () => Promise<JsonObject>
  /** Facts for hooks. */
  readonly metadata: () => Promise<JsonObject>
  /** Reports an error that clients must not see. */
  readonly report: (error: unknown) => void
}

/** An address of the API. A protocol is a list of them: see `ai-sdk/`. */
export type Route = {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Below the path of the API. `:id` stands for one segment. */
  readonly path: string
  readonly handle: (request: UserRequest, id: string) => Promise<Response>
}

type Found = { readonly route: Route; readonly id: string }

/** The route of a request, or the methods that its address has; none if it does not exist. */
export function findRoute(
  routes: readonly Route[],
  { method, path }: { readonly method: string; readonly path: string },
): Found | { readonly allow: readonly string[] } {
  const found = routes.flatMap((route) => {
    const id = matched(route.path.split('/'), path.split('/'))
    return id === undefined ? [] : [{ route, id }]
  })
  return found.find(({ route }) => route.method === method) ?? { allow: found.map(({ route }) => route.method) }
}

/** What `:id` stands for, or an empty text if there is none. Undefined if the path does not match. */
function matched(pattern: readonly string[], path: readonly string[]): string | undefined {
  if (pattern.length !== path.length) return undefined
  let id = ''
  for (const [i, expected] of pattern.entries()) {
    if (expected === ':id') id = path[i]!
    else if (expected !== path[i]) return undefined
  }
  try {
    return decodeURIComponent(id)
  } catch {
    return undefined
  }
}
