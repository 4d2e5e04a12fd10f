const PLACE = /\$ARGUMENTS\[(\d{1,2})\]|\$ARGUMENTS(?![A-Za-z0-9_])|\$(\d{1,2})(?!\d|[.,]\d)/g

/** The length of all inserted arguments: a skill may insert them many times. */
const MAX_FILLED = 200_000

/**
 * Inserts arguments into a text: `$ARGUMENTS` for all of them, `$ARGUMENTS[0]` or `$0` for the first, or `$1` if that is the
 * `first`. Inserted text is not searched again. `used` says whether there was a placeholder.
 */
export function fillArguments(
  text: string,
  given: string,
  first: 0 | 1 = 0,
): { readonly text: string; readonly used: boolean } {
  const places = text.match(PLACE)?.length ?? 0
  if (places * given.length > MAX_FILLED)
    throw new Error('The skill would be too long with these arguments. Use shorter ones.')
  const words = splitArguments(given)
  let used = false
  const filled = text.replace(PLACE, (place: string, index: string | undefined, short: string | undefined) => {
    const at = index ?? (short === undefined ? undefined : Number(short) - first)
    if (at !== undefined && words[Number(at)] === undefined) return index === undefined ? place : ''
    used = true
    return at === undefined ? given : words[Number(at)]!
  })
  return { text: filled, used }
}

/** Splits words like a shell, with quotes but no other shell syntax. */
export function splitArguments(text: string): readonly string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, bare]) => double ?? single ?? bare!)
}
