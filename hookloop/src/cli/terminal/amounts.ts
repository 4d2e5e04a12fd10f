import type { TokenUsage } from '../../core/state/usage.ts'

/** `1 step`, `2 steps`. */
export function count(n: number, noun: string): string {
  return `${grouped(n)} ${noun}${n === 1 ? '' : 's'}`
}

export function tokens({ inputTokens, outputTokens }: TokenUsage): string {
  return `${count(inputTokens, 'token')} in, ${grouped(outputTokens)} out`
}

/** US dollars, with four digits for small amounts. */
export function dollars(amount: number): string {
  if (amount > 0 && amount < 0.0001) return '<$0.0001'
  return `$${amount.toFixed(amount < 1 ? 4 : 2)}`
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  return `${Math.floor(seconds / 60)} m ${seconds % 60} s`
}

export function grouped(n: number): string {
  return n.toLocaleString('en-US')
}

/** Rounded down: `3 h ago`. */
export function ago(ms: number): string {
  const units = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
  ] as const
  const unit = units.find(([size]) => ms >= size)
  return unit === undefined ? 'now' : `${Math.floor(ms / unit[0])} ${unit[1]} ago`
}
