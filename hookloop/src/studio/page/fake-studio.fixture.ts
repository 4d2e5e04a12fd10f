import type { Api, SessionSummary, Streams } from '../api.types.ts'
import type { EmbeddedRun, Question, RunChange } from '../run.types.ts'
import { loadPage } from '../page-html.ts'
import { HttpProblem } from '../request-rules.ts'
import { serveStudio } from '../server.ts'
import { exampleRun, question } from './run-data.fixture.ts'
import { editQuestion, comparison, hooksReport, sessions, studioInfo, whatIfReport } from './studio-data.fixture.ts'

export const TOKEN = 'a-token'

type Calls = { readonly [Name in keyof Api]?: (request: Api[Name]['request']) => Api[Name]['response'] }
type Reader = {
  readonly name: keyof Streams
  readonly push: (line: unknown) => void
  readonly lose: () => void
}
export type Sent = { readonly name: string; readonly request: unknown }

/** A studio that answers with given data, so that a test decides what happens and when. */
export async function fakeStudio(
  given: {
    readonly run?: EmbeddedRun
    readonly calls?: Calls
    readonly questions?: readonly Question[]
    readonly sessions?: readonly SessionSummary[]
  } = {},
) {
  const run = given.run ?? exampleRun
  const list = given.sessions ?? sessions
  const sent: Sent[] = []
  const readers = new Set<Reader>()
  const early: RunChange[] = []
  let connected = Promise.resolve()
  let waiting: readonly Question[] = given.questions ?? [question, editQuestion]
  const find: NonNullable<Calls['find']> = ({ from, back = false, what }) => {
    const matching = run.rows.filter((row) =>
      what === 'decision' ? row.decision : JSON.stringify(row).toLowerCase().includes(what.text.toLowerCase()),
    )
    const found = back ? matching.findLast(({ index }) => index < from) : matching.find(({ index }) => index > from)
    return { row: found?.index ?? null }
  }
  const calls: Calls = {
    studio: () => studioInfo,
    sessions: () => ({ sessions: list }),
    session: () => ({
      summary: list[0]!,
      runs: [{ ...run.run, index: 0, input: 'What is in this folder?', status: 'completed' }, run.run],
    }),
    run: ({ session }) => ({ ...run.run, session }),
    rows: ({ from, count }) => ({ rows: run.rows.slice(from, from + count), total: run.rows.length }),
    row: ({ row }) => run.details[row] ?? { row: run.rows[row]!, text: run.rows[row]!.text, entries: [], errors: [] },
    find,
    time: () => run.time,
    explanation: () => run.explanation,
    whatIf: ({ add }) => ({
      ...whatIfReport,
      differences: [whatIfReport.differences, add.length === 0 ? [] : whatIfReport.differences].flat(),
    }),
    runFork: () => ({ session: 'forked' }),
    answer: ({ question: id }) => {
      waiting = waiting.filter((each) => each.id !== id)
      send('inbox', { questions: waiting })
      return { answered: id }
    },
    hooks: () => hooksReport,
    compare: () => comparison,
    fork: () => ({ session: 'forked' }),
    export: ({ as }) => ({ name: `run.${as}`, type: 'text/plain', text: 'exported' }),
    ...given.calls,
  }
  const first: {
    readonly [Name in keyof Streams]: (request: Streams[Name]['request']) => readonly Streams[Name]['line'][]
  } = {
    sessions: () => [{ type: 'page', sessions: list }],
    run: ({ session }) => [{ type: 'run', run: { ...run.run, session } }],
    inbox: () => [{ questions: waiting }],
  }
  const send = <Name extends keyof Streams>(name: Name, line: Streams[Name]['line']): void => {
    for (const reader of readers) if (reader.name === name) reader.push(line)
  }
  async function* follow(name: keyof Streams, request: never, signal: AbortSignal): AsyncGenerator {
    await connected
    const lines: unknown[] = [...first[name](request), ...(name === 'run' ? early.splice(0) : [])]
    const lost = new AbortController()
    let news = Promise.withResolvers<void>()
    const push = (line: unknown): void => {
      lines.push(line)
      news.resolve()
    }
    const lose = (): void => {
      lost.abort()
      news.resolve()
    }
    const reader: Reader = { name, push, lose }
    readers.add(reader)
    signal.addEventListener('abort', lose)
    while (!lost.signal.aborted) {
      yield* lines.splice(0)
      await news.promise
      news = Promise.withResolvers()
    }
    readers.delete(reader)
    throw new Error('The connection is lost.')
  }

  const server = await serveStudio(
    {
      call: async (name, request) => {
        sent.push({ name, request })
        try {
          return (calls[name as 'run'] as (request: never) => unknown)(request as never)
        } catch (thrown) {
          const { message } = thrown as Error
          throw new HttpProblem(409, message, `The studio says ${message}.`)
        }
      },
      stream: (name, request, signal) => {
        sent.push({ name, request })
        return follow(name as 'run', request as never, signal)
      },
    },
    { page: loadPage, token: TOKEN },
  )
  const { origin } = new URL(server.url)
  return {
    sent,
    /** Something happens in the run that is shown: the page learns of it as soon as it follows the run. */
    change: (line: RunChange) =>
      void ([...readers].some(({ name }) => name === 'run') ? send('run', line) : early.push(line)),
    /** Closes all streams, as a studio that is restarted does. Returns how to let the page connect again. */
    drop: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      connected = promise
      for (const { lose } of readers) lose()
      return resolve
    },
    url: (route = '/sessions') => `${server.url}&${route}`,
    origin,
    [Symbol.asyncDispose]: () => server.close(),
  }
}
