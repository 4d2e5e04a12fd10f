export { mcp, type Mcp, type McpAnswer } from './mcp.ts'
export type { HttpServer, McpOptions, McpServer, StdioServer } from './settings.ts'
