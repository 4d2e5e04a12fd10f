export { mcp, type Mcp, type McpToolResult } from './mcp.ts'
export type { McpOptions, McpServer } from './settings.ts'
