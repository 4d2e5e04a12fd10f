import { realpathSync } from 'node:fs'

/** The path with all links resolved, or undefined if it does not exist. */
export function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
