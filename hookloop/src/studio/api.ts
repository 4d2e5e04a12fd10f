import { exportSession } from '../sessions/session/export-session.ts'
import { forkSession } from '../sessions/session/fork-session.ts'
import { resumeOf } from '../sessions/session/session.ts'
import { isJsonObject } from '../values/json.ts'
import { amount, boolean, listOf, must, object, oneOf, optional, shapeOf, string, type Shape } from '../values/shape.ts'
import type { Api, SessionInfo, Streams, WhatIfRequest } from './api.types.ts'
import type { Context } from './context.ts'
import { compareRuns } from './compare.ts'
import { hooksReport } from './hooks-report.ts'
import { answerQuestion, openQuestions } from './inbox.ts'
import { contains, rowDetail } from './row-detail.ts'
import { HttpProblem } from './request-rules.ts'
import { watchRun } from './run-stream.ts'
import { runAsPage } from './run-as-page.ts'
import type { FindRequest, RunInfo } from './run.types.ts'
import { questionsIn, runExplanation, runInfo, runSummary, type RunView } from './runs.ts'
import { listSessions, readSummary, watchSessions } from './sessions.ts'
import { timeReport } from './time.ts'
import { judgeAgain, runInFork, type OtherHooks } from './what-if.ts'

type Takes = { readonly [field: string]: Shape }
type Call<R, A> = { readonly takes: Takes; readonly run: (request: R, context: Context) => A | Promise<A> }

const index = must((value) => Number.isSafeInteger(value), 'must be a whole number')
const upTo = (max: number): Shape =>
  must(
    (value) => Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= max,
    `must be a whole number from 1 to ${max}`,
  )
const ref = { session: string, run: optional(index) }
const whatIf = { ...ref, without: listOf(string), add: listOf(string) }
const filter = {
  cwd: optional(string),
  agent: optional(string),
  status: optional(listOf(string)),
  minCostUsd: optional(amount),
  text: optional(string),
  after: optional(shapeOf({ id: string, updatedAt: amount })),
  count: optional(upTo(200)),
}
const answer: Shape = (value, path) =>
  shapeOf({ type: oneOf('allow', 'edit', 'block') })(value, path) ??
  (isJsonObject(value) && value['type'] === 'edit' ? shapeOf({ args: object })(value, path) : undefined) ??
  (isJsonObject(value) && value['type'] === 'block' ? shapeOf({ reason: string })(value, path) : undefined)

export const calls: { readonly [K in keyof Api]: Call<Api[K]['request'], Api[K]['response']> } = {
  studio: { takes: {}, run: (_, { options }) => options.info },
  sessions: { takes: filter, run: (request, { store }) => listSessions(store, request) },
  session: { takes: { session: string }, run: ({ session }, context) => sessionInfo(session, context) },
  run: { takes: ref, run: async (request, context) => infoOf(await context.reader.view(request), context) },
  rows: {
    takes: { ...ref, from: amount, count: upTo(1000) },
    run: async ({ from, count, ...request }, { reader }) => {
      const { rows } = (await reader.view(request)).matrix
      return { rows: rows.slice(from, from + count).map(({ row }) => row), total: rows.length }
    },
  },
  find: {
    takes: { ...ref, from: index, back: optional(boolean), what: must(isWhat, 'must be "decision" or { text }') },
    run: async (request, { reader }) => ({ row: findRow(await reader.view(request), request) }),
  },
  row: {
    takes: { ...ref, row: index },
    run: async (request, { reader }) => {
      const { run, matrix } = await reader.view(request)
      const found = matrix.rows[request.row]
      if (found === undefined) throw new HttpProblem(404, 'ROW_UNKNOWN', `The run has ${matrix.rows.length} rows.`)
      return rowDetail(found, questionsIn(run))
    },
  },
  time: {
    takes: ref,
    run: async (request, { reader }) => {
      const { run, matrix } = await reader.view(request)
      return timeReport(run, matrix, Date.now())
    },
  },
  explanation: {
    takes: ref,
    run: async (request, { reader }) => runExplanation((await reader.view(request)).run),
  },
  whatIf: {
    takes: whatIf,
    run: async (request, context) => {
      const { run, matrix } = await context.reader.view(request)
      const can = context.options.canJudge(run)
      if (can !== true) throw new HttpProblem(409, 'AGENT_UNKNOWN', can)
      const others = await otherHooks(request, await context.options.agentOf(run), context)
      return judgeAgain(context.store, { run, matrix }, others)
    },
  },
  runFork: {
    takes: whatIf,
    run: async (request, context) => {
      const { run } = await context.reader.view(request)
      const others = await otherHooks(request, await agentFor(run.agent, context), context)
      const { session, ended } = await runInFork(context.store, run, { ...others, signal: context.signal })
      context.inBackground(ended)
      return { session }
    },
  },
  inbox: { takes: {}, run: async (_, { store }) => ({ questions: await openQuestions(store) }) },
  answer: {
    takes: { session: string, question: string, hash: string, answer, resume: optional(boolean) },
    run: async (request, context) => {
      const { store, options, signal } = context
      const { session, resume = false } = request
      const agent = resume ? await agentFor((await readSummary(store, session)).agent, context) : undefined
      await answerQuestion(store, request, options.info.user)
      if (agent !== undefined) context.inBackground(resumeOf(store, agent, { session, signal }))
      return { answered: request.question }
    },
  },
  hooks: {
    takes: {},
    run: (_, context) => hooksReport(context.store, { dir: context.options.info.dir, agent: context.options.agent }),
  },
  compare: {
    takes: { a: shapeOf(ref), b: shapeOf(ref) },
    run: async ({ a, b }, { reader }) => compareRuns((await reader.view(a)).run, (await reader.view(b)).run),
  },
  fork: {
    takes: { session: string, at: optional(amount), message: optional(string) },
    run: async ({ session, ...how }, { store }) => ({ session: await forkSession(store, session, how) }),
  },
  export: {
    takes: { ...ref, as: oneOf('jsonl', 'html') },
    run: async ({ as, ...request }, context) => {
      const { store, options } = context
      const name = request.session.replaceAll(/[^\w.-]+/g, '-').slice(0, 100)
      if (as === 'jsonl') {
        const text = await exportSession(store, request.session, { redact: options.redact })
        return { name: `${name}.jsonl`, type: 'application/x-ndjson', text }
      }
      const view = await context.reader.view(request)
      const live = await context.reader.isLive(request.session)
      const text = runAsPage(view, { live, page: await options.page(), redact: options.redact })
      return { name: `${name}.html`, type: 'text/html', text }
    },
  },
}

type Stream<R, L> = {
  readonly takes: Takes
  readonly run: (request: R, context: Context, signal: AbortSignal) => AsyncIterable<L>
}

export const streams: { readonly [K in keyof Streams]: Stream<Streams[K]['request'], Streams[K]['line']> } = {
  sessions: {
    takes: filter,
    run: (request, { store, poller }, signal) => watchSessions(store, request, poller.follow(signal)),
  },
  run: {
    takes: { ...ref, from: amount },
    run: (request, context, signal) =>
      watchRun(context.store, request, {
        view: (run) => context.reader.view(run),
        info: (view) => infoOf(view, context),
        changed: context.poller.follow(signal),
        signal,
      }),
  },
  inbox: {
    takes: {},
    async *run(_, { store, poller }, signal) {
      const changed = poller.follow(signal)
      let known = ''
      do {
        const questions = await openQuestions(store)
        if (JSON.stringify(questions) !== known) yield { questions }
        known = JSON.stringify(questions)
      } while (await changed())
    },
  },
}

async function sessionInfo(id: string, { store, reader }: Context): Promise<SessionInfo> {
  const listed = await readSummary(store, id)
  const [runs, live] = [await reader.runs(id), await reader.isLive(id)]
  const last = runs.at(-1)
  const status = listed.status === 'running' && !live ? 'interrupted' : listed.status
  return {
    summary: { ...listed, live, status, updatedAt: last?.endedAt ?? last?.at ?? 0 },
    runs: runs.map((run) => runSummary(run, live && run === last)),
    from: last?.forkedFrom?.id,
  }
}

async function infoOf(view: RunView, { reader, options }: Context): Promise<RunInfo> {
  const { run, runs } = view
  const isLast = run.index === runs - 1
  const live = isLast && run.status === 'running' && (await reader.isLive(run.session))
  return runInfo(view, { live, whatIf: options.canJudge(run), now: Date.now() })
}

function isWhat(value: unknown): boolean {
  return value === 'decision' || (isJsonObject(value) && typeof value['text'] === 'string')
}

function findRow({ matrix: { rows } }: RunView, { from, back = false, what }: FindRequest): number | null {
  const words = what === 'decision' ? undefined : what.text.toLowerCase()
  const isFound = (row: (typeof rows)[number]): boolean =>
    words === undefined ? row.row.decision : contains(row, words)
  const found = back ? rows.slice(0, Math.max(0, from)).findLast(isFound) : rows.slice(from + 1).find(isFound)
  return found?.row.index ?? null
}

/** The agent that the studio may run, if it has this name. */
async function agentFor(name: string, { options: { agent, liveAgent } }: Context): Promise<OtherHooks['agent']> {
  if (agent === undefined || liveAgent === undefined)
    throw new HttpProblem(409, 'AGENT_UNKNOWN', 'To run agents here, start the studio with --agent <file>.')
  const own = agent.describe().name
  if (name === own) return liveAgent()
  throw new HttpProblem(409, 'AGENT_UNKNOWN', `This is a run of "${name}"; the studio has the agent "${own}".`)
}

/** Hooks come only from files that the user has named on the command line. */
async function otherHooks(
  { add, without }: WhatIfRequest,
  agent: OtherHooks['agent'],
  { options }: Context,
): Promise<OtherHooks> {
  const unknown = add.find((file) => !options.info.hookFiles.includes(file))
  if (unknown !== undefined)
    throw new HttpProblem(403, 'FILE_NOT_NAMED', `Start the studio with --hooks to use this file: ${unknown}`)
  return { agent, without, hooks: await options.loadHooks(add) }
}
