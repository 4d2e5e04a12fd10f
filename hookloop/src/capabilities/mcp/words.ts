/** Text of a server for people and models: no control or invisible characters, and not longer than is useful. */
export function cleaned(text: string, maxChars: number): string {
  // Looked at no further than is kept, with room for what is taken out.
  const visible = text
    .slice(0, maxChars * 4)
    .replace(INVISIBLE, '')
    .replace(/\r\n?/g, '\n')
    .trim()
  return visible.length <= maxChars ? visible : `${visible.slice(0, maxChars).toWellFormed()}…`
}

// Controls except tab and line ends; format characters, which turn text around or hide some in it; private and unpaired.
const INVISIBLE = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu

const MAX_FAILURE = 2_000

/** Words about a failure without what must stay secret: headers and variables a server was given. */
export function safeWords(text: string, secrets: readonly string[]): string {
  let safe = text
  for (const secret of secrets) {
    const bare = secret.replace(/^(Bearer|Basic|Token)\s+/i, '')
    for (const each of [secret, bare]) if (each.length >= MIN_SECRET) safe = safe.replaceAll(each, '[secret]')
  }
  return cleaned(safe, MAX_FAILURE)
}

/** Shorter values are words such as "1" or "true", which would be taken out of every sentence. */
const MIN_SECRET = 6
