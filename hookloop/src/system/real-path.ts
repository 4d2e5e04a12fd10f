import { realpathSync } from 'node:fs'

/** Where a path really leads, or nothing if it leads nowhere. */
export function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
