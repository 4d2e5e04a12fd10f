import type { AgentEvent, Answer, Message } from '../plugin.ts'
import { isJsonObject, sameJson, type JsonObject } from '../values/json.ts'
import type { Answers, Approval } from '../index.ts'
import { AgentError } from '../errors.ts'
import { readRuns } from '../sessions/log/read-runs.ts'
import { answerApproval } from '../sessions/session/approvals.ts'
import { rewindSession, type RewindOptions } from '../sessions/session/rewind-session.ts'
import type { SessionHead } from '../sessions/session/session-head.ts'
import { whenFree } from '../sessions/session/session-lock.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import { watchSession, type WatchOptions } from '../sessions/log/watch-session.ts'
import { HttpError } from './http.ts'
import { prefixOf, sessionOf } from './session-ids.ts'
import type { SentTurn, SessionRunner } from './session-runner.ts'
import { readTurns, turnId, type Turn, type TurnList } from './turns.ts'

/** A question of a chat, for the option `approvers`. */
export type Question = {
  readonly approval: Approval
  /** The user of the chat. */
  readonly user: string
  /** The id of the chat, as its page has it. */
  readonly chat: string
}

/** What is the same for all chats. */
export type ChatRules = {
  readonly runner: SessionRunner
  /** Whether this user may answer. */
  readonly mayAnswer: (question: Question, user: string) => boolean | Promise<boolean>
  readonly onNewInput: 'reject' | 'block'
  readonly maxSessionsPerUser: number
}

/** Which events of a session are to be followed. */
export type Following = {
  /** Events after this number. */
  readonly after: number
  /** A question up to this number does not end the turn: it was answered. */
  readonly answeredUntil?: number
  /** Questions that were answered just now. A worker that resumes a run without knowing it stores them once more. */
  readonly answered?: ReadonlySet<string>
  /** The client has the events up to this number. */
  readonly sentUntil?: number
  /** Runs that are not part of it. */
  readonly except?: ReadonlySet<string>
  /** Rejects if the turn cannot start, where that is known only later. */
  readonly sent?: SentTurn | undefined
}

/** A chat of one user, whatever protocol its page uses. The history is that of the session, never that of the page. */
export class Chat {
  readonly user: string
  readonly id: string
  readonly session: string
  readonly #rules: ChatRules
  readonly #allowed = new Set<Approval>()

  constructor(rules: ChatRules, { user, chat }: { readonly user: string; readonly chat: unknown }) {
    this.session = sessionOf({ user, chat })
    this.#rules = rules
    this.user = user
    this.id = chat as string
  }

  get #store(): SessionStore {
    return this.#rules.runner.store
  }

  /** What a list shows of the chat; undefined if it does not exist. */
  async head(): Promise<SessionHead | undefined> {
    return (await this.#store.read(this.session, { after: Infinity }))?.head as SessionHead | undefined
  }

  /** The events until now. */
  async events(after = 0): Promise<readonly AgentEvent[]> {
    const events: AgentEvent[] = []
    for await (const event of this.#watch({ after, follow: false })) events.push(event)
    return events
  }

  async #turns(): Promise<TurnList> {
    return readTurns(this.#store, this.session, (await this.head())?.createdAt)
  }

  /** The events of a turn, until it ends or waits for an answer that this user may give. */
  async *follow(following: Following, signal: AbortSignal): AsyncGenerator<AgentEvent> {
    const { after, answeredUntil = 0, answered, except, sent } = following
    const isOpen = (approval: Approval): boolean => answered?.has(approval.id) !== true
    const [rejected, started] = [new AbortController(), new AbortController()]
    const ends = AbortSignal.any([signal, rejected.signal])
    const until = AbortSignal.any([signal, started.signal])
    sent?.result({ signal: until }).catch((error: unknown) => until.aborted || rejected.abort(error))
    void sent?.lost?.then((error) => error && rejected.abort(error))
    for await (const event of this.#watch({ after, signal: ends })) {
      if (except?.has(event.run) === true) continue
      const isNew = event.seq > answeredUntil
      if (isNew && event.type === 'suspended' && event.pending.length > 0 && !event.pending.some(isOpen)) continue
      started.abort()
      yield event
      if (event.type === 'finished') return
      if (event.type !== 'suspended' || !isNew) continue
      if (event.pending.length === 0 || event.pending.filter(isOpen).some(this.isAllowed)) return
    }
    if (rejected.signal.aborted) throw rejected.signal.reason
  }

  /** The events, after it is known which of their questions this user may answer. */
  async *#watch(options: WatchOptions): AsyncGenerator<AgentEvent> {
    for await (const event of watchSession(this.#store, this.session, options)) {
      if (event.type === 'suspended') await this.#allow(event.pending)
      yield event
    }
  }

  /** Whether this user may answer a question in an event that was read. */
  readonly isAllowed = (approval: Approval): boolean => this.#allowed.has(approval)

  /** Notes which of the questions this user may answer. Returns whether there is one. */
  async #allow(pending: readonly Approval[]): Promise<boolean> {
    for (const approval of pending) if (await this.mayAnswer(approval)) this.#allowed.add(approval)
    return pending.some(this.isAllowed)
  }

  /** Starts a turn. A turn that is sent again, because the connection broke, is not run twice. */
  async send(message: Message, options: { readonly turn: string; readonly metadata: JsonObject }): Promise<Following> {
    const list = await this.#turns()
    const { turns } = list
    const same = turns.find(({ turn }) => turn === options.turn)
    const isRetry = same === turns.at(-1) && sameJson(same?.message ?? null, message)
    const hasFailed = same?.status === 'failed' || same?.status === 'cancelled'
    if (same !== undefined && isRetry && !hasFailed) return this.#again(same)
    if (same !== undefined) return this.#rewind(same, list, message) // it was edited, or is to be answered again
    const { runner, onNewInput } = this.#rules
    const begin = (): Promise<SentTurn | undefined> =>
      this.#whenFree(() => runner.send(this.session, message, { ...options, onNewInput }))
    const known = nothingNew(list)
    const sent =
      list.last > 0
        ? await begin()
        : await inTurn(this.user, async () => {
            await this.#checkCount()
            return begin()
          })
    return { ...known, sent }
  }

  /** All of the last turn. Its questions were answered, except the last one if it waits. */
  async #again({ after, asked }: Turn): Promise<Following> {
    const isWaiting = (await this.head())?.status === 'suspended'
    return { after, answeredUntil: isWaiting ? asked - 1 : asked }
  }

  /** Answers a message again: that of the turn with the first of these ids that is one of a message or of an answer. */
  async regenerate(...ids: readonly unknown[]): Promise<Following | undefined> {
    const list = await this.#turns()
    const { turns } = list
    const turn = ids.map((id) => turns.find((each) => id === each.run || id === turnId(each))).find((each) => each)
    return turn && this.#rewind(turn, list)
  }

  /** Goes back to before the answer of a turn, and answers its message or another one. */
  async #rewind(turn: Turn, list: TurnList, message?: Message): Promise<Following> {
    const { runner } = this.#rules
    const known = nothingNew(list)
    const isLast = list.turns.at(-1)?.run === turn.run
    const options = isLast ? { ...(message !== undefined && { message }) } : await this.#earlier(turn, message)
    await this.stop()
    await this.#whenFree(() => rewindSession(this.#store, this.session, options))
    const sent = await this.#whenFree(() => runner.resume(this.session))
    return { ...known, sent: sent ?? undefined }
  }

  async #earlier(turn: Turn, message = turn.message): Promise<RewindOptions> {
    const runs = await readRuns(this.#store, this.session)
    const seq = runs.find(({ id }) => id === turn.run)?.steps[0]?.seq
    if (seq !== undefined && message !== undefined) return { at: seq, message }
    throw new HttpError(409, 'The chat cannot go back to this message: it has no answer.')
  }

  /** Whether this user, or another one, may answer a question of the chat. */
  async mayAnswer(approval: Approval, by = this.user): Promise<boolean> {
    return this.#rules.mayAnswer({ approval, user: this.user, chat: this.id }, by)
  }

  /** Stores answers and continues the run. Each question is answered once, by a user who may. */
  async answer(answers: Answers, by = this.user): Promise<Following> {
    const { last, turns } = await this.#turns()
    const pending = (await this.head())?.pending ?? []
    for (const [id, answer] of Object.entries(answers)) {
      const approval = pending.find((each) => each.id === id)
      if (approval === undefined) throw new AgentError('ANSWER_UNKNOWN', `The chat does not wait for "${id}".`)
      const edited = editedBy(answer, approval)
      const isAllowed =
        (await this.mayAnswer(approval, by)) && (edited === undefined || (await this.mayAnswer(edited, by)))
      if (!isAllowed) throw new HttpError(403, 'You may not answer this question.')
      const isDenial = isJsonObject(answer) && 'block' in answer
      if (!isDenial && approval.expiresAt !== undefined && Date.now() >= approval.expiresAt)
        throw new AgentError('ANSWER_EXPIRED', `"${id}" has expired.`)
    }
    for (const [approval, answer] of Object.entries(answers))
      await this.#whenFree(() => answerApproval(this.#store, { session: this.session, approval, answer, by }))
    const sent = await this.resume()
    const answered = new Set(Object.keys(answers))
    return { after: turns.at(-1)?.after ?? 0, answeredUntil: last, answered, sentUntil: last, sent }
  }

  /** Resumes a run that was suspended or interrupted, unless it runs already. */
  async resume(): Promise<SentTurn | undefined> {
    try {
      return (await this.#whenFree(() => this.#rules.runner.resume(this.session))) ?? undefined
    } catch (thrown) {
      if (!hasCode(thrown, 'SESSION_BUSY', 'RESUME_NOT_SUSPENDED')) throw thrown // another process works on it
      return undefined
    }
  }

  /**
   * Continues to follow the current turn. Undefined if it has ended or waits for this user, unless the client has not received
   * all of it: `seen` is the number of its last event.
   */
  async reconnect(seen = Infinity): Promise<Following | undefined> {
    const { status, pending = [] } = (await this.head()) ?? {}
    const isWaiting = status === 'suspended' && pending.length > 0
    const isOpen = status === 'running' || (status === 'suspended' && !(await this.#allow(pending)))
    const list = await this.#turns()
    const last = list.turns.at(-1)
    if (last === undefined) return undefined
    if (!isOpen || last.status !== undefined)
      return seen < list.last ? { after: last.after, answeredUntil: seen } : undefined
    const sent = isWaiting ? undefined : await this.resume() // it was interrupted or paused, or every question was answered
    return { after: last.after, answeredUntil: last.asked, sent }
  }

  stop(): Promise<void> {
    return this.#rules.runner.stop(this.session, { by: this.user })
  }

  async delete(): Promise<void> {
    await this.stop()
    await this.#whenFree(() => this.#store.delete(this.session))
  }

  async #checkCount(): Promise<void> {
    const { maxSessionsPerUser: limit } = this.#rules
    const own = await this.#store.list({ user: this.user, limit })
    if (own.filter(({ id }) => id.startsWith(prefixOf(this.user))).length < limit) return
    throw new HttpError(429, `You have ${limit} chats, which is the limit. Delete one to start another.`)
  }

  /** The end of a run is stored a moment before its session is unlocked. */
  #whenFree<T>(act: () => Promise<T>): Promise<T> {
    return whenFree(act, { waitMs: WAIT_MS, mayWait: async () => (await this.head())?.status !== 'running' })
  }
}

/** The question with the arguments that will run, if the answer changes them. */
function editedBy(answer: Answer, approval: Approval): Approval | undefined {
  if (!isJsonObject(answer) || !('allow' in answer)) return undefined
  return { ...approval, toolCall: { ...approval.toolCall, args: answer.allow } }
}

/** The answer that denies a question, with the reason of the user if there is one. */
export function denial(reason: unknown): Answer {
  return { block: typeof reason === 'string' && reason !== '' ? reason : 'The user blocked it.' }
}

const WAIT_MS = 2_000

/** What follows what is known now. Taken before a run starts, because the list grows. */
function nothingNew({ last, runs }: TurnList): Following {
  return { after: last, except: new Set(runs) }
}

function hasCode(thrown: unknown, ...codes: readonly string[]): boolean {
  return thrown instanceof AgentError && codes.includes(thrown.code)
}

const queues = new Map<string, Promise<unknown>>()

/** One after the other for each user: so that two new chats are not both the last one that is allowed. */
async function inTurn<T>(user: string, work: () => Promise<T>): Promise<T> {
  const before = queues.get(user) ?? Promise.resolve()
  const own = before.then(work, work)
  queues.set(user, own)
  try {
    return await own
  } finally {
    if (queues.get(user) === own) queues.delete(user)
  }
}
