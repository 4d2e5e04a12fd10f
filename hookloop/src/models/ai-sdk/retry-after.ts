/** How long a provider asks to wait, in milliseconds: from its headers, or, as Google does, from the body. */
export function retryAfterOf(thrown: unknown): number | undefined {
  try {
    return read(thrown)
  } catch {
    return undefined // what cannot be looked at says nothing
  }
}

function read(thrown: unknown): number | undefined {
  const { responseHeaders, responseBody } = (thrown ?? {}) as {
    readonly responseHeaders?: { readonly [name: string]: string | undefined } | null
    readonly responseBody?: unknown
  }
  const milliseconds = Number.parseFloat(responseHeaders?.['retry-after-ms'] ?? '')
  if (milliseconds >= 0) return milliseconds
  const header = responseHeaders?.['retry-after']
  if (header !== undefined) {
    const seconds = Number(header)
    const ms = Number.isNaN(seconds) ? Date.parse(header) - Date.now() : seconds * 1_000
    if (Number.isFinite(ms)) return Math.max(0, Math.round(ms))
  }
  const delay = typeof responseBody === 'string' ? /"retryDelay"\s*:\s*"([\d.]+)s"/.exec(responseBody) : null
  return delay === null ? undefined : Math.round(Number(delay[1]) * 1_000)
}
