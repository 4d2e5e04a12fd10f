/** Text of a server for users and models: without control and invisible characters, and of limited length. */
export function cleanText(text: string, maxChars: number): string {
  // Only as much is processed as can be returned, with a margin for what is removed.
  const visible = text
    .slice(0, maxChars * 4)
    .replace(INVISIBLE, '')
    .replace(/\r\n?/g, '\n')
    .trim()
  return visible.length <= maxChars ? visible : `${visible.slice(0, maxChars).toWellFormed()}…`
}

// Control characters except tab and line ends; format characters, which reverse or hide text; private use and surrogates.
const INVISIBLE = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu

const MAX_MESSAGE = 2_000

/** An error message without secrets: the headers and environment variables that a server was given. */
export function redactMessage(text: string, secrets: readonly string[]): string {
  let safe = text
  for (const secret of secrets) {
    const bare = secret.replace(/^(Bearer|Basic|Token)\s+/i, '')
    for (const each of [secret, bare]) if (each.length >= MIN_SECRET) safe = safe.replaceAll(each, '[secret]')
  }
  return cleanText(safe, MAX_MESSAGE)
}

/** Shorter values are words such as "1" or "true", which would be removed from every sentence. */
const MIN_SECRET = 6
