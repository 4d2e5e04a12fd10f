import { join } from 'node:path'

/** Where npm test installs Bun, if there is a package of it for this machine. */
export function bunProgram(): string {
  const kind = process.arch === 'arm64' ? 'aarch64' : 'x64-baseline'
  return join(import.meta.dirname, 'node_modules', `@oven/bun-${process.platform}-${kind}/bin/bun`)
}
