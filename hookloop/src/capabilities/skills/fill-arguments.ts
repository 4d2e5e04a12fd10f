const PLACE = /\$ARGUMENTS\[(\d{1,2})\]|\$ARGUMENTS(?![A-Za-z0-9_])|\$(\d{1,2})(?!\d|[.,]\d)/g

/**
 * Puts arguments where a skill wants them: `$ARGUMENTS` for all of them, `$ARGUMENTS[0]` or `$0` for the first. What was
 * put in is not looked at again. `used` says whether there was a place for them.
 */
export function fillArguments(text: string, given: string): { readonly text: string; readonly used: boolean } {
  const words = splitArguments(given)
  let used = false
  const filled = text.replace(PLACE, (place: string, index: string | undefined, short: string | undefined) => {
    const at = index ?? short
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
