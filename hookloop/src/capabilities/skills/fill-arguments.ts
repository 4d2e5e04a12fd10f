const PLACE = /\$ARGUMENTS\[(\d{1,2})\]|\$ARGUMENTS(?![A-Za-z0-9_])|\$(\d{1,2})(?!\d|[.,]\d)/g

/** Characters of arguments in one text: a skill may ask for them ten thousand times. */
const MAX_FILLED = 200_000

/**
 * Puts arguments where a text wants them: `$ARGUMENTS` for all of them, `$ARGUMENTS[0]` or `$0` for the first, or `$1` where
 * that is the `first`. What was put in is not looked at again. `used` says whether there was a place for them.
 */
export function fillArguments(
  text: string,
  given: string,
  first: 0 | 1 = 0,
): { readonly text: string; readonly used: boolean } {
  const places = text.match(PLACE)?.length ?? 0
  if (places * given.length > MAX_FILLED)
    throw new Error('With these arguments the skill would be too long. Use shorter ones.')
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

/** Words as a shell would split them, with quotes and without anything else that a shell does. */
export function splitArguments(text: string): readonly string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, bare]) => double ?? single ?? bare!)
}
