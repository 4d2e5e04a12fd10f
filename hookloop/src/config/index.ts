// Hooks from files, through a door of their own: what it reads, nobody needs who writes hooks in code.
export { claudeHooks, type ClaudeHooksOptions } from './claude/claude-hooks.ts'
export type { Wake } from './claude/hook-memory.ts'
export { claudeCommands, type ClaudeCommandsOptions } from './claude/commands.ts'
export { hookFileSchema } from './hook-file-schema.ts'
export { hookFilesOf, projectHooks, type ProjectHooksOptions } from './project-hooks.ts'
export { TrustStore, type TrustStatus } from './trust.ts'
export type { Fingerprint } from './fingerprint.ts'
