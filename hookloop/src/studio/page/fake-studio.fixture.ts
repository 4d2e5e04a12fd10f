import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Api, SessionSummary, Streams } from '../api.types.ts'
import type { EmbeddedRun, Question, RunChange } from '../run.types.ts'
import { bundlePage } from './bundle-page.ts'
import { exampleRun, question } from './run-data.fixture.ts'
import { editQuestion, comparison, hooksReport, sessions, studioInfo, whatIfReport } from './studio-data.fixture.ts'

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
export const TOKEN = 'a-token'

type Calls = { readonly [Name in keyof Api]?: (request: Api[Name]['request']) => Api[Name]['response'] }
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
  const page = await bundlePage()
  const run = given.run ?? exampleRun
  const list = given.sessions ?? sessions
  const sent: Sent[] = []
  const open = new Map<keyof Streams, Set<ServerResponse>>()
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
    for (const response of open.get(name) ?? []) response.write(`data: ${JSON.stringify(line)}\n\n`)
  }

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.setHeader('content-security-policy', POLICY).setHeader('cache-control', 'no-store')
    const files: { readonly [path: string]: readonly [type: string, text: string] } = {
      '/': [
        'text/html',
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Hookloop studio</title><link rel="stylesheet" href="/page.css"><script defer src="/page.js"></script><body id="hookloop-studio"></body></html>',
      ],
      '/page.js': ['text/javascript', page.script],
      '/page.css': ['text/css', page.style],
    }
    const file = files[request.url ?? '']
    if (file !== undefined)
      return void response.writeHead(200, { 'content-type': `${file[0]}; charset=utf-8` }).end(file[1])
    const fail = (status: number, code: string): void =>
      void response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(JSON.stringify({ error: { code, message: `The studio says ${code}.` } }))
    if (request.headers.authorization !== `Bearer ${TOKEN}`) return fail(401, 'TOKEN_MISSING')
    let body = ''
    for await (const piece of request) body += String(piece)
    const [, kind, name = ''] = (request.url ?? '').split('/')
    const input = JSON.parse(body) as never
    sent.push({ name, request: input })
    if (kind === 'stream') {
      await connected
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const line of first[name as 'run'](input)) response.write(`data: ${JSON.stringify(line)}\n\n`)
      const readers = open.get(name as 'run') ?? new Set()
      open.set(name as 'run', readers.add(response))
      if (name === 'run') for (const line of early.splice(0)) send(name, line)
      response.once('close', () => readers.delete(response))
      return
    }
    try {
      const answer = (calls[name as 'run'] as ((request: never) => unknown) | undefined)?.(input)
      if (answer === undefined) return fail(404, 'NOT_FOUND')
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    } catch (thrown) {
      fail(409, (thrown as Error).message)
    }
  }
  const server = createServer((request, response) => void handle(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    sent,
    /** Something happens in the run that is shown: the page learns of it as soon as it follows the run. */
    change: (line: RunChange) => void ((open.get('run')?.size ?? 0) === 0 ? early.push(line) : send('run', line)),
    /** Closes all streams, as a studio that is restarted does. Returns how to let the page connect again. */
    drop: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      connected = promise
      for (const readers of open.values()) for (const response of readers) response.destroy()
      return resolve
    },
    url: (route = '/sessions') => `${origin}/#token=${TOKEN}&${route}`,
    origin,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
