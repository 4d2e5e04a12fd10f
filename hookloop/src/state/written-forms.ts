const MIN_ENCODED_CHARS = 8

/**
 * A text as it is, and as it is written in JSON, a URL, HTML, SQL, a shell and source code, and in Base64 and hex. The longest
 * first: one may contain another. They are strings, because an expression for a long text is slow, or too large.
 */
export function writtenForms(text: string): readonly string[] {
  const plain = text.toWellFormed()
  const bytes = new TextEncoder().encode(plain)
  const encoded =
    text.length < MIN_ENCODED_CHARS
      ? []
      : [...base64Forms(bytes), ...base64Forms(utf16(text)), ...hexForms(bytes), ...numberForms(text)]
  const forms = [text, ...jsonForms(text), ...urlForms(plain), ...htmlForms(plain), ...quotedForms(text), ...encoded]
  return [...new Set(forms)].toSorted((a, b) => b.length - a.length)
}

/** Languages escape different characters. What is inside another text is escaped again. */
function jsonForms(text: string): readonly string[] {
  const json = inJson(text)
  const escaped = escapedInJson.flatMap((characters) => {
    const form = json.replace(characters, inUnicode)
    return [form, form.replace(/\\u[\da-f]{4}/g, (escape) => `\\u${escape.slice(2).toUpperCase()}`)]
  })
  const forms = [json, ...escaped]
  return [...forms, ...forms.map((form) => form.replaceAll('/', '\\/')), inJson(json), inJson(inJson(json))]
}

const escapedInJson = [/[^\0-\x7F]/g, /[&<>]/g, /[&<>'+]/g, /[&<>]|[^\0-\x7F]/g, /[&<>'+]|[^\0-\x7F]/g]

function inUnicode(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

function urlForms(text: string): readonly string[] {
  const url = encodeURIComponent(text)
  const strict = url.replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
  const form = new URLSearchParams([['', text]]).toString().slice(1)
  const all = [url, strict, form, url.replaceAll('%20', '+'), encodeURI(text)]
  return [...all, ...all.map((each) => each.replace(/%../g, (escape) => escape.toLowerCase())), encodeURIComponent(url)]
}

function htmlForms(text: string): readonly string[] {
  const html = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  const quoted = html.replaceAll('"', '&quot;')
  return [html, quoted, ...['&#39;', '&#x27;', '&apos;', '&#039;'].map((quote) => quoted.replaceAll("'", quote))]
}

/** In quotes of a shell, SQL, CSV and source code, without quotes in a shell, and in a regular expression. */
function quotedForms(text: string): readonly string[] {
  const source = inJson(text).replaceAll('\\"', '"')
  return [
    text.replaceAll("'", String.raw`'\''`),
    text.replaceAll("'", `'"'"'`),
    text.replaceAll("'", "''"),
    text.replaceAll('"', '""'),
    text.replace(/["\\$`]/g, '\\$&'),
    text.replace(/[^\w\n%+,./:=@\u0080-\u{10FFFF}-]/gu, '\\$&'),
    text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'),
    source,
    source.replaceAll("'", "\\'"),
  ]
}

/** Bytes in hex: alone, with separators, and as escapes of source code and URLs. */
function hexForms(bytes: Uint8Array): readonly string[] {
  const all = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0'))
  const pairs = (all.join('').match(/.{1,4}/g) ?? []).join(' ')
  const escapes = ['\\x', '%'].map((before) => all.map((byte) => before + byte).join(''))
  const forms = [...['', ' ', ':'].map((between) => all.join(between)), pairs, ...escapes]
  const octal = Array.from(bytes, (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
  return [...forms, ...forms.map((form) => form.replace(/[a-f]/g, (digit) => digit.toUpperCase())), octal]
}

/** Every character escaped. */
function numberForms(text: string): readonly string[] {
  return [text.replace(/[^]/g, inUnicode), text.replace(/[^]/gu, (character) => `&#${character.codePointAt(0)};`)]
}

function utf16(text: string): Uint8Array {
  const units = Array.from({ length: text.length }, (_, i) => text.charCodeAt(i))
  return Uint8Array.from(units.flatMap((unit) => [unit & 0xff, unit >> 8]))
}

/** Bytes in Base64: alone, and the characters that are the same wherever they stand in a longer text, such as `user:password`. */
function base64Forms(bytes: Uint8Array): readonly string[] {
  const encode = (before: number): string =>
    btoa('\0'.repeat(before) + Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')).replace(/=+$/, '')
  const within = [0, 1, 2].map((before) => {
    const bits = (before + bytes.length) * 8
    return encode(before).slice(Math.ceil((before * 8) / 6), Math.floor(bits / 6))
  })
  return [encode(0), ...within].flatMap((form) => [form, form.replaceAll('+', '-').replaceAll('/', '_')])
}
