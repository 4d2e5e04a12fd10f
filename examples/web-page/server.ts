import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { serve, toNodeListener } from 'hookloop/serve'
import { sqliteStore } from 'hookloop/sessions'
import agent from './agent.ts'

const handle = serve(agent, {
  store: sqliteStore('chats.db'),
  user: () => 'me', // the id of the user, from your login; undefined is answered with 401
})

const page = '<!doctype html><title>Chat</title><body><script type="module" src="/page.js"></script>'

const server = createServer(
  toNodeListener(async (request) => {
    const { pathname } = new URL(request.url)
    if (pathname === '/') return new Response(page, { headers: { 'content-type': 'text/html' } })
    if (pathname !== '/page.js') return handle(request)
    return new Response(await readFile('page.js', 'utf8'), { headers: { 'content-type': 'text/javascript' } })
  }),
)
const port = Number(process.env['PORT'] ?? 3000)
server.listen(port, '127.0.0.1', () => console.log(`http://localhost:${port}`))
