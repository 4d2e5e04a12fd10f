import { isAgent, type Agent } from '../plugin.ts'
import { checkArgument, readOptions } from '../values/check-options.ts'
import type { JsonObject } from '../values/json.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import { agUiRoutes } from './ag-ui/routes.ts'
import { aiSdkRoutes } from './ai-sdk/routes.ts'
import { Chat, type ChatRules, type Question } from './chat.ts'
import { errorResponse, HttpError, readJson } from './http.ts'
import { findRoute, type Route, type UserRequest } from './route.ts'
import { commonRoutes } from './routes.ts'
import { agentRunner, type SessionRunner } from './session-runner.ts'

/** Options of `serve`. */
export type ServeOptions = {
  /**
   * The user who sends a request: an id that does not change, from your login. Undefined is answered with 401. Chats belong to
   * this user. Required.
   */
  readonly user: (request: Request) => string | undefined | Promise<string | undefined>
  /** Where chats are stored. Required with an agent; a runner has its own. */
  readonly store?: SessionStore
  /** Whether a user may answer a question. Default: the user of the chat may, and no other. */
  readonly approvers?: (question: Question, user: string) => boolean | Promise<boolean>
  /** Facts for hooks, stored with each message. `user` is always one of them. Default none. */
  readonly metadata?: (request: Request, user: string) => JsonObject | Promise<JsonObject>
  /** Where the addresses start: `POST /api/chat` and others. Default `/api`. */
  readonly path?: string
  /** A message while a question is open: `block` blocks the question, `reject` answers with 409. Default `block`. */
  readonly onNewInput?: 'block' | 'reject'
  /** Whether pages receive the decisions of hooks, as `data-hook` parts or `hookloop.hook` events. Default false. */
  readonly showHooks?: boolean
  /** The size of a request. `useChat` sends the whole conversation. Default 4 MiB. */
  readonly maxBodyBytes?: number
  /** The number of chats of a user. One more is answered with 429. Default 1,000. */
  readonly maxSessionsPerUser?: number
  /** The time without an event after which a comment keeps the connection open. Default 15,000. */
  readonly keepAliveMs?: number
  /** The time without an event, or in which a client takes nothing, after which a stream ends. The run continues. Default 300,000. */
  readonly idleMs?: number
  /** Receives errors that clients must not see. Default: `console.error`. */
  readonly onError?: (error: unknown) => void
}

/** The protocols that pages can use. To add one, add its routes. */
const routes: readonly Route[] = [...commonRoutes, ...aiSdkRoutes, ...agUiRoutes]

const defaults = {
  user: undefined,
  store: undefined,
  path: '/api',
  onNewInput: 'block',
  showHooks: false,
  maxBodyBytes: 4_194_304,
  maxSessionsPerUser: 1_000,
  keepAliveMs: 15_000,
  idleMs: 300_000,
  approvers: ({ user: owner }: Question, user: string): boolean => user === owner,
  metadata: (): JsonObject => ({}),
  onError: (error: unknown): void => console.error(error),
} as const

/**
 * Puts an agent behind HTTP, for `useChat` of the AI SDK and for clients of AG-UI. Returns a function from a `Request` to a
 * `Response`, as Hono, Bun, Deno and Next use it; for `node:http` there is `toNodeListener`.
 *
 * @example
 * const handle = serve(agent, { store: sqliteStore('chats.db'), user: (request) => userOf(request) })
 * createServer(toNodeListener(handle)).listen(3000)
 */
export function serve(
  agent: Agent<unknown> | SessionRunner,
  options: ServeOptions,
): (request: Request) => Promise<Response> {
  const given = readOptions('serve', options, defaults)
  const { user: userOf, onError: report } = given
  const runner = runnerFor(agent, given.store)
  const rules: ChatRules = {
    runner,
    mayAnswer: given.approvers,
    onNewInput: given.onNewInput,
    maxSessionsPerUser: given.maxSessionsPerUser,
  }
  const base = given.path.replace(/\/*$/, '/')
  return async (request) => {
    try {
      const { pathname } = new URL(request.url)
      const path = pathname.startsWith(base) ? pathname.slice(base.length) : ''
      const found = findRoute(routes, { method: request.method, path })
      if ('allow' in found && found.allow.length === 0) throw new HttpError(404, 'There is no such address.')
      const user = (await userOf(request)) ?? '' // many libraries return null for a user who is not logged in
      if (user === '') throw new HttpError(401, 'Log in first.')
      if ('allow' in found)
        throw new HttpError(405, `Use ${found.allow.join(' or ')}.`, { allow: found.allow.join(', ') })
      const userRequest: UserRequest = {
        request,
        user,
        rules,
        stream: given,
        chat: (chat) => new Chat(rules, { user, chat }),
        body: () => readJson(request, given.maxBodyBytes),
        metadata: async () => ({ ...(await given.metadata(request, user)), user }),
        report,
      }
      return await found.route.handle(userRequest, found.id)
    } catch (thrown) {
      return errorResponse(thrown, report)
    }
  }
}

function runnerFor(agent: Agent<unknown> | SessionRunner, store: SessionStore | undefined): SessionRunner {
  if (!isAgent(agent)) return agent as SessionRunner
  checkArgument('serve', ['store', store], store !== undefined, "a store, such as sqliteStore('sessions.db')")
  return agentRunner(agent as Agent<unknown>, store!)
}
