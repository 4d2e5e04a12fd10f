import { readFileSync } from 'node:fs'

export function version(): string {
  const file = new URL('../../package.json', import.meta.url) // the same place from src/ and from dist/
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version
}
