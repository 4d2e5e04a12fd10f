import type { TestContext } from 'node:test'
import { serve, type Served, type serveSessions } from './real-server.fixture.ts'

/** A server behind a port, closed when the test ends. */
export async function served(
  t: TestContext,
  made: Promise<Served> | Promise<Awaited<ReturnType<typeof serveSessions>>>,
) {
  const server = await made
  t.after(() => server.close())
  return server
}

export type Answer = (id: number, request: Request) => Response | Promise<Response>

/** A server that works until its tool is called, and then answers as given. */
export async function breaking(t: TestContext, answer: Answer, get?: () => Response): Promise<string> {
  const { url } = await served(
    t,
    serve(async (request) => {
      if (request.method === 'GET' && get !== undefined) return get()
      if (request.method !== 'POST') return new Response(null, { status: 405 })
      const { id, method } = (await request.json()) as { id?: number; method: string }
      if (id === undefined) return new Response(null, { status: 202 })
      if (method === 'tools/call') return answer(id, request)
      const results: { [method: string]: object } = {
        initialize: {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'x', version: '1' },
        },
        'tools/list': { tools: [{ name: 'go', inputSchema: { type: 'object' } }] },
      }
      const result = results[method]
      const error = { code: -32_601, message: 'Method not found' }
      return Response.json({ jsonrpc: '2.0', id, ...(result === undefined ? { error } : { result }) })
    }),
  )
  return url
}
