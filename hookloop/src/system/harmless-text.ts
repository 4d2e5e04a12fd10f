// What a process writes is read by a model, kept in a record and shown on a terminal. Control characters are commands to
// the last of these, and a way to hide text from whoever looks at it.

// oxlint-disable-next-line no-control-regex
const SEQUENCES = /\u001B(?:\[[0-?]*[ -/]*[@-~]|[\]P^_X][^\u0007\u001B\u009C]*(?:\u0007|\u001B\\|\u009C))/g
const CONTROLS = /[^\P{Cc}\t\n]/gu
/** They turn the direction of a text, or are letters that nobody can see. */
const DECEIVING = /[\u202A-\u202E\u2066-\u2069\u{E0000}-\u{E007F}]/gu
const INVISIBLE = /\p{Cf}/gu

/**
 * A text without colours and titles, with lines that end in a newline, and with a picture in place of every other control
 * character. It is never longer than what it was.
 */
export function harmless(text: string): string {
  return text
    .replace(SEQUENCES, '')
    .replace(/\r+\n/g, '\n')
    .replace(/\r/g, '\n')
    .replace(CONTROLS, picture)
    .replace(DECEIVING, '\uFFFD')
}

/** A text exactly as it is, with everything that cannot be seen made visible, for whoever must decide about it. */
export function exactly(text: string): string {
  return text
    .replace(CONTROLS, escaped)
    .replace(INVISIBLE, escaped)
    .replace(/ {9,}/g, (run) => `[${run.length} spaces]`)
}

/** Unicode has a picture for each control character of ASCII. */
function picture(character: string): string {
  const code = character.charCodeAt(0)
  if (code === 0x7f) return '\u2421'
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : '\uFFFD'
}

function escaped(character: string): string {
  return `\\u{${character.codePointAt(0)!.toString(16)}}`
}
