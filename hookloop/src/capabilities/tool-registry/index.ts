export { getLoadedTools, toolRegistry, type ToolRegistryOptions } from './tool-registry.ts'
