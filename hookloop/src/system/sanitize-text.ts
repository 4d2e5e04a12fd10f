// The output of a process is read by a model, stored and shown on a terminal. Control characters are commands to a terminal,
// and can hide text from a reader.

// oxlint-disable-next-line no-control-regex
const SEQUENCES = /\u001B(?:\[[0-?]*[ -/]*[@-~]|[\]P^_X][^\u0007\u001B\u009C]*(?:\u0007|\u001B\\|\u009C))/g
const CONTROLS = /[^\P{Cc}\t\n]/gu
/** Characters that change the direction of text, or are invisible letters. */
const DECEIVING = /[\u202A-\u202E\u2066-\u2069\u{E0000}-\u{E007F}]/gu
const INVISIBLE = /\p{Cf}/gu

/** Removes escape sequences, ends lines with a newline and replaces other control characters by symbols. Never longer than the input. */
export function sanitizeText(text: string): string {
  return text
    .replace(SEQUENCES, '')
    .replace(/\r+\n/g, '\n')
    .replace(/\r/g, '\n')
    .replace(CONTROLS, symbolFor)
    .replace(DECEIVING, '\uFFFD')
}

/** Escapes every invisible character, so that an approver sees exactly what will run. */
export function revealInvisible(text: string): string {
  return text
    .replace(CONTROLS, escaped)
    .replace(INVISIBLE, escaped)
    .replace(/ {9,}/g, (run) => `[${run.length} spaces]`)
}

/** Unicode has a symbol for each control character of ASCII. */
function symbolFor(character: string): string {
  const code = character.charCodeAt(0)
  if (code === 0x7f) return '\u2421'
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : '\uFFFD'
}

function escaped(character: string): string {
  return `\\u{${character.codePointAt(0)!.toString(16)}}`
}
