// A small MCP server for example 34: a shelf of books. It is started as a process and spoken to over its input and output.
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import * as z from 'zod'

const shelf = new Map([['Dune', 'on the shelf']])

serveStdio(() => {
  const server = new McpServer({ name: 'shelf', version: '1.0.0' }, { instructions: 'Return what you borrow.' })
  const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] })
  const input = z.object({ title: z.string() })
  server.registerTool('find', { description: 'Finds a book.', inputSchema: input }, async ({ title }) =>
    text(shelf.get(title) ?? 'not here'),
  )
  server.registerTool('borrow', { description: 'Borrows a book.', inputSchema: input }, async ({ title }) => {
    shelf.set(title, 'borrowed')
    return text(`${title} is yours`)
  })
  server.registerTool('burn', { description: 'Burns a book.', inputSchema: input }, async ({ title }) => {
    shelf.delete(title)
    return text(`${title} is gone`)
  })
  server.registerTool('crash', { description: 'Ends the server.' }, async () => process.exit(1))
  server.registerResource('rules', 'shelf://rules', { mimeType: 'text/plain' }, async (uri) => ({
    contents: [{ uri: uri.href, text: 'One book at a time.' }],
  }))
  return server
})
