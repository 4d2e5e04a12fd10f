// The output of a process is read by a model, stored and shown on a terminal. Control characters are commands to a terminal,
// and can hide text from a reader.

// oxlint-disable-next-line no-control-regex
const SEQUENCES = /\u001B(?:\[[0-?]*[ -/]*[@-~]|[\]P^_X][^\u0007\u001B\u009C]*(?:\u0007|\u001B\\|\u009C))/g
const CONTROLS = /[^\P{Cc}\t\n]/gu
/** Characters that change the direction of text, letters without a shape, and what hides data after a character. */
const DECEIVING =
  /[\u115F\u1160\u202A-\u202E\u2066-\u2069\u3164\uFFA0\u{E0000}-\u{E0FFF}]|(?<=[\uFE00-\uFE0F])[\uFE00-\uFE0F]/gu

/**
 * The table of invisible characters: what a reader does not see, or takes for a space. Formatting, letters and selectors
 * without a shape, separators other than the space, blank symbols, and code points without a meaning.
 */
const INVISIBLE =
  /[\p{Cf}\p{Default_Ignorable_Code_Point}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u2800\u{13441}\u{13442}\u{16FE4}\u{1D159}]|(?! )\p{Zs}/gu

/** Removes escape sequences, ends lines with a newline and replaces other control characters by symbols. Never longer than the input. */
export function sanitizeText(text: string): string {
  return text
    .replace(SEQUENCES, '')
    .replace(/\r+\n/g, '\n')
    .replace(/\r/g, '\n')
    .replace(CONTROLS, symbolFor)
    .replace(DECEIVING, '\uFFFD')
}

/** Removes every control character except tab and newline, and replaces characters that make a text look like another. */
export function withoutControls(text: string): string {
  return text.replace(CONTROLS, '').replace(DECEIVING, '\uFFFD')
}

/** The same JSON, with the characters escaped that JSON.stringify() leaves as they are and a terminal obeys. */
export function escapeInJson(json: string): string {
  const escape = (text: string): string =>
    text.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return json.replace(/[\u007F-\u009F]/g, escape).replace(DECEIVING, escape)
}

/** Escapes every control character except tab and newline, and every invisible character. */
export function escapeInvisible(text: string): string {
  return text.replace(CONTROLS, escaped).replace(INVISIBLE, escaped)
}

/** Escapes every invisible character and long runs of spaces, so that an approver sees exactly what will run. */
export function revealInvisible(text: string): string {
  return escapeInvisible(text).replace(/ {9,}/g, (run) => `[${run.length} spaces]`)
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
