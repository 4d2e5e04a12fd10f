import { revealInvisible } from '../../system/sanitize-text.ts'

const SHOWN_CHARS = 4_000

/**
 * A command as it is shown to whoever must decide about it: all of it, with what cannot be seen made visible. Of one that is
 * too long to be read the beginning and the end are shown, because the end is where something may hide.
 */
export function describeCommand(command: string): string {
  const exact = revealInvisible(command)
  if (exact.length <= SHOWN_CHARS) return exact
  const half = SHOWN_CHARS / 2
  const missing = exact.length - 2 * half
  return `${exact.slice(0, half)}\n[… ${missing} more characters …]\n${exact.slice(-half)}`
}
