export { bash, type BashOptions } from './bash.ts'
export type { SandboxChoice, SandboxOptions } from './sandbox.ts'
export type { BashProgress } from './stream-progress.ts'
