const MIN_ENCODED_CHARS = 8

/**
 * A text as it is, and as it is written in JSON, in a URL and in Base64. The longest first: one may contain another. They are
 * strings, because an expression for a long text is slow, or too large.
 */
export function secretEncodings(text: string): readonly string[] {
  const plain = text.toWellFormed()
  const json = inJson(text)
  const base64 = text.length < MIN_ENCODED_CHARS ? [] : base64Forms(new TextEncoder().encode(plain))
  const forms = [text, json, inJson(json), ...urlForms(plain), ...base64]
  return [...new Set(forms)].toSorted((a, b) => b.length - a.length)
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

function urlForms(text: string): readonly string[] {
  const url = encodeURIComponent(text)
  const form = new URLSearchParams([['', text]]).toString().slice(1)
  const all = [url, form, encodeURI(text)]
  return [...all, ...all.map((each) => each.replace(/%../g, (escape) => escape.toLowerCase()))]
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
