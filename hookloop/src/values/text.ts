/** Cuts a text to at most this many characters, and marks that with an ellipsis. Never cuts a character in half. */
export function shorten(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars).toWellFormed()}…`
}

/** `1 step`, `2 steps`. */
export function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`
}

/** A string as it is written in code, for messages that say what to write. */
export function inCode(text: string): string {
  return /['\\]/.test(text) ? JSON.stringify(text) : `'${text}'`
}
