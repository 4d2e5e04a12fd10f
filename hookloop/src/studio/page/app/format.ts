// Numbers and times as people read them.

const integers = new Intl.NumberFormat('en-US')
const short = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 })

export function count(value: number, noun?: string): string {
  const text = integers.format(value)
  return noun === undefined ? text : `${text} ${noun}${value === 1 ? '' : 's'}`
}

export function shortCount(value: number): string {
  return value < 10_000 ? integers.format(value) : short.format(value)
}

export function money(usd: number): string {
  if (usd === 0) return '$0'
  return usd < 0.01 ? `$${usd.toPrecision(2)}` : `$${usd.toFixed(usd < 1 ? 3 : 2)}`
}

export function duration(ms: number): string {
  if (ms < 1) return ms <= 0 ? '0 ms' : `${ms.toFixed(ms < 0.1 ? 2 : 1)} ms`
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1_000)} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

export function size(chars: number): string {
  if (chars < 1_000) return count(chars, 'character')
  return chars < 1_000_000 ? `${(chars / 1_000).toFixed(1)} KB` : `${(chars / 1_000_000).toFixed(1)} MB`
}

/** `just now`, `5 min ago`, `3 h ago`, and the date of what is older than a day. */
export function since(at: number, now: number): string {
  const seconds = Math.max(0, now - at) / 1_000
  if (seconds < 45) return 'just now'
  if (seconds < 3_600) return `${Math.max(1, Math.round(seconds / 60))} min ago`
  if (seconds < 86_400) return `${Math.round(seconds / 3_600)} h ago`
  return new Date(at).toISOString().slice(0, 10)
}

/** What a hook of a mode is called. */
export function modeName(mode: string): string {
  return mode === 'transform' ? 'hook' : mode
}

export function moment(at: number): string {
  return new Date(at).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
}
