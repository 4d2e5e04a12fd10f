import { isJsonObject, type Json } from './json.ts'
import { secretEncodings } from './secret-encodings.ts'

export const REDACTED = '[redacted]'

/** Removes secrets from a value. */
export type Redaction = (value: Json) => Json

/** Patterns of API keys and other secrets with a recognizable format. All repetitions are bounded, so no input makes them slow. */
export const keyPatterns: readonly RegExp[] = [
  beginning(
    /(?:sk|rk|gsk|xai|gh[oprsu]|github_pat|glpat|hf|npm|xox[a-z])[-_](?=[A-Za-z0-9_-]{0,200}[0-9])[A-Za-z0-9_-]{16,}/g,
  ),
  beginning(/(?:AKIA|ASIA)[A-Z0-9]{16}\b/g),
  beginning(/AIza[A-Za-z0-9_-]{20,}/g),
  beginning(/Bearer\s{1,8}(?=[A-Za-z0-9._~+/=-]{0,200}[0-9])[A-Za-z0-9._~+/=-]{16,}/gi),
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:(?!-----END [A-Z ]{0,40}PRIVATE KEY-----)[\s\S]){0,8000}(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?/g,
  /(?<=:\/\/)[^/\s:@]*:[^/\s@]+(?=@)/g,
  beginning(/eyJ[A-Za-z0-9_-]{10,400}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}/g),
]

/**
 * Patterns of keys, tokens and passwords, also by the word before them. Exported sessions are redacted with them. They match
 * too much rather than too little, so do not use them on text that a model or a tool needs.
 */
export const secretPatterns: readonly RegExp[] = [
  ...keyPatterns,
  beginning(/(?:sk|pk|rk|api|key)[-_][A-Za-z0-9_-]{12,}/g),
  beginning(/Bearer\s{1,8}[A-Za-z0-9._~+/=-]{8,}/gi),
  /(?<=(?:password|passwd|passphrase|secret|token|(?:api|access|private)[-_]?key)["']?\s{0,8}[:=]\s{0,8}["']?)[^\s"',;]{4,}/gi,
  /(?<=authorization["']?\s{0,8}[:=]\s{0,8}["']?)[^\s"',;]+(?: [^\s"',;]+)?/gi,
]

/** Names of fields whose values are always secret. */
export const secretName =
  /(?:password|passwd|passphrase|secret|token|(?:api|access|private)[-_]?key|authorization|cookie)$/i

const MIN_SECRET_CHARS = 8
const VARIABLE = /KEY(?:_|S?$)|TOKEN|SECRET|PASSW|CREDENTIAL|(?:^|_)AUTH(?:_|$)/i

/** The values of environment variables whose names say that they hold a key, token or password. */
export function environmentSecrets(env: { readonly [name: string]: string | undefined }): readonly string[] {
  return Object.entries(env).flatMap(([name, value]) =>
    value !== undefined && value.length >= MIN_SECRET_CHARS && VARIABLE.test(name) ? [value] : [],
  )
}

/** Returns a function that redacts these patterns and strings in all strings of a value, names included. */
export function redactor(
  rules: readonly (RegExp | string)[],
  isSecret: (name: string) => boolean = () => false,
): Redaction {
  const patterns = rules
    .filter((rule) => rule !== '')
    .flatMap((rule): readonly (RegExp | string)[] =>
      typeof rule === 'string' ? secretEncodings(rule) : [global(rule)],
    )
  const clean = (text: string): string => patterns.reduce<string>((rest, rule) => rest.replaceAll(rule, REDACTED), text)
  const walk = (value: Json): Json => {
    if (typeof value === 'string') return clean(value)
    if (Array.isArray(value)) return value.map(walk)
    if (!isJsonObject(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [
        clean(name),
        typeof inner === 'string' && isSecret(name) ? REDACTED : walk(inner),
      ]),
    )
  }
  knownRules.set(walk, patterns)
  return walk
}

const knownRules = new WeakMap<Redaction, readonly (RegExp | string)[]>()

/** The patterns and strings of a `redactor`, or of several that are joined. None of another function. */
export function rulesOf(redact: Redaction): readonly (RegExp | string)[] {
  return knownRules.get(redact) ?? []
}

/** One function that applies all of these, in order. */
export function joinRedactors(all: readonly Redaction[]): Redaction | undefined {
  const different = [...new Set(all)]
  if (different.length <= 1) return different[0]
  const joined: Redaction = (value) => different.reduce((rest, redact) => redact(rest), value)
  knownRules.set(joined, different.flatMap(rulesOf))
  return joined
}

/** Matches at the start of a word, also after an escape such as `\\n` in JSON inside a string. */
function beginning({ source, flags }: RegExp): RegExp {
  return new RegExp(`(?:(?<![A-Za-z0-9_])|(?<=\\\\(?:[bfnrt]|u[0-9A-Fa-f]{4})))${source}`, flags)
}

function global(rule: RegExp): RegExp {
  return rule.global ? rule : new RegExp(rule.source, `${rule.flags}g`)
}
