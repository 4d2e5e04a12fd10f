import type { Json } from '../../state/json.ts'

const HIDDEN = '[hidden]'

/** Names of variables whose values nobody should be shown. */
const SECRET_NAME = /KEY(?:_|S?$)|TOKEN|SECRET|PASSW|CREDENTIAL|(?:^|_)AUTH(?:_|$)/i
const MIN_SECRET = 8

/** What looks like a key wherever it stands: of well-known services, in a header, in an address. */
const SECRET_SHAPES: readonly RegExp[] = [
  /\b(?:(?:sk|pk|rk|gh[opsu]|xox[abp]|glpat)[-_]|AKIA|AIza)[A-Za-z0-9_-]{16,}/g,
  /(?<=\bBearer\s{1,9})[A-Za-z0-9._~+/=-]{8,}/gi,
  /(?<=:\/\/)[^\s/@]{1,500}(?=@)/g,
]

/**
 * The same value without secrets in its texts: values of environment variables that are named like one, and what has the
 * shape of a key.
 */
export function redactEnvironmentSecrets(value: Json, env: NodeJS.ProcessEnv = process.env): Json {
  const known = Object.entries(env).flatMap(([name, secret]) =>
    SECRET_NAME.test(name) && secret !== undefined && secret.length >= MIN_SECRET ? [secret] : [],
  )
  // The longest first: a secret may be the beginning of another.
  return clean(
    value,
    known.toSorted((a, b) => b.length - a.length),
  )
}

function clean(value: Json, secrets: readonly string[]): Json {
  if (typeof value === 'string') return cleanText(value, secrets)
  if (Array.isArray(value)) return value.map((each: Json) => clean(each, secrets))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, clean(each, secrets)]))
}

function cleanText(text: string, secrets: readonly string[]): string {
  const unnamed = secrets.reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), text)
  return SECRET_SHAPES.reduce((rest, shape) => rest.replace(shape, HIDDEN), unnamed)
}
