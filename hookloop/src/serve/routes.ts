import type { Answer } from '../plugin.ts'
import { listApprovals } from '../sessions/session/approvals.ts'
import { Chat } from './chat.ts'
import { emptyResponse, HttpError, jsonResponse } from './http.ts'
import type { Route } from './route.ts'
import { chatOf, prefixOf } from './session-ids.ts'

const MAX_LISTED = 100

/** What every protocol has: the chats of a user, and open questions. */
export const commonRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'chat',
    handle: async ({ request, user, rules: { runner } }) => {
      const after = new URL(request.url).searchParams.get('after')
      const prefix = prefixOf(user)
      const place = after === null ? {} : { after: `${prefix}${encodeURIComponent(after)}` }
      const sessions = await runner.store.list({ user, limit: MAX_LISTED, ...place })
      const chats = sessions.flatMap(({ id, head: { title, status }, updatedAt }) => {
        const chat = id.startsWith(prefix) ? chatOf(id) : undefined
        return chat === undefined ? [] : [{ id: chat.chat, title, status, updatedAt }]
      })
      return jsonResponse(chats)
    },
  },
  {
    method: 'DELETE',
    path: 'chat/:id',
    handle: async ({ chat }, id) => {
      await chat(id).delete()
      return emptyResponse()
    },
  },
  {
    method: 'POST',
    path: 'chat/:id/stop',
    handle: async ({ chat }, id) => {
      await chat(id).stop()
      return emptyResponse()
    },
  },
  {
    method: 'GET',
    path: 'approvals',
    handle: async ({ user, rules }) => {
      const questions = []
      for (const { session, ...approval } of await listApprovals(rules.runner.store)) {
        const place = chatOf(session)
        if (place === undefined || !(await rules.mayAnswer({ approval, ...place }, user))) continue
        questions.push({ ...approval, ...place })
      }
      return jsonResponse(questions)
    },
  },
  {
    method: 'POST',
    path: 'approvals',
    handle: async ({ user, rules, body }) => {
      const { user: owner, chat, id, answer } = await body()
      if (typeof owner !== 'string' || typeof id !== 'string' || answer === undefined)
        throw new HttpError(400, 'An answer is { user, chat, id, answer }, as GET lists the question.')
      await new Chat(rules, { user: owner, chat }).answer({ [id]: answer as Answer }, user)
      return emptyResponse()
    },
  },
]
