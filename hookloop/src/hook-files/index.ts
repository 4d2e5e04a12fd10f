// Hooks from files, through a door of their own: what it reads, nobody needs who writes hooks in code.
export { claudeHooks, type ClaudeHooksOptions } from './claude/claude-hooks.ts'
export type { Wake } from './claude/hook-memory.ts'
export { claudeCommands, type ClaudeCommandsOptions } from './claude/commands.ts'
export { hookFileSchema } from './files/hook-file-schema.ts'
export { hookFilesOf, projectHooks, type ProjectHooksOptions } from './files/project-hooks.ts'
export { TrustStore, type TrustStatus } from './trust/trust.ts'
export type { Fingerprint } from './trust/fingerprint.ts'
