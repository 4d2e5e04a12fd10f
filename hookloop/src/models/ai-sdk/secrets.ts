import type { AiSdkModel, ModelReply } from '../../state/inference.ts'
import { isJsonObject, type Json } from '../../state/json.ts'
import { waitAtMost } from '../../system/timeout.ts'

const REPLACEMENT = '[key]'

/** Names of environment variables that hold what nobody may read. */
const SECRET_NAME = /(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)(_|$)/i
const SECRET_HEADER = /auth|key|token|secret|cookie/i

/** What keys look like, for those that come from neither the environment nor a header. */
const LOOKS_SECRET = [
  /(?<=")[^"]*(?=" is an invalid header value)/g, // what a key with a line break in it is told as
  /\b(?:sk|pk|rk|gsk|xai|hf|ghp|key|api)[-_][A-Za-z0-9_*-]{8,}/g,
  /\bAIza[A-Za-z0-9_-]{10,}/g,
  /\bBearer\s+[^\s"',]+/gi,
  /\bBasic\s+[A-Za-z0-9+/]{12,}={0,2}/g,
  /\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  /(?<=[?&][\w-]{0,30}(?:key|token|secret|password|sig|signature)=)[^&\s"']+/gi,
  /(?<=:\/\/)[^\s/@"']+(?=@)/g,
]

/** A provider may repeat the key it was sent. Nothing that leaves this folder may. */
export async function withoutSecrets(text: string, model: AiSdkModel | undefined): Promise<string> {
  return hidden(text, await secretsOf(model), LOOKS_SECRET)
}

/**
 * An answer without keys in what stands around it: warnings, the name of the model, what the provider wants back with a
 * part. What the model says is left as it is. What only looks like a key is taken out of warnings alone: a name or a
 * signature may look like one.
 */
export async function withoutKeys<R extends ModelReply>(reply: R, model: AiSdkModel): Promise<R> {
  const { content, warnings, modelId } = reply
  const hasOptions = content.some((part) => part.providerOptions !== undefined)
  if (warnings === undefined && modelId === undefined && !hasOptions) return reply
  const secrets = await secretsOf(model)
  return {
    ...reply,
    ...(hasOptions && {
      content: content.map((part) =>
        part.providerOptions === undefined
          ? part
          : { ...part, providerOptions: hiddenIn(part.providerOptions, secrets) },
      ),
    }),
    ...(warnings !== undefined && { warnings: warnings.map((each) => hidden(each, secrets, LOOKS_SECRET)) }),
    ...(typeof modelId === 'string' && { modelId: hidden(modelId, secrets) }),
  }
}

/** Every form in which a key may come back, the longest first: one key may be the beginning of another. */
async function secretsOf(model: AiSdkModel | undefined): Promise<readonly string[]> {
  const plain = [...secretsInEnvironment(), ...(await secretsInHeaders(model))]
  const forms = plain.flatMap((key) => [
    key,
    key.trim(),
    encodeURIComponent(key.toWellFormed()),
    JSON.stringify(key).slice(1, -1),
    Buffer.from(key).toString('base64'),
  ])
  return [...new Set(forms)].filter(isLong).toSorted((a, b) => b.length - a.length)
}

function hidden(text: string, secrets: readonly string[], patterns: readonly RegExp[] = []): string {
  const known = secrets.reduce((clean, secret) => clean.replaceAll(secret, REPLACEMENT), text)
  return patterns.reduce((clean, pattern) => clean.replace(pattern, REPLACEMENT), known)
}

function hiddenIn<T extends Json>(value: T, secrets: readonly string[]): T {
  const clean = (inner: Json): Json => {
    if (typeof inner === 'string') return hidden(inner, secrets)
    if (Array.isArray(inner)) return inner.map(clean)
    if (!isJsonObject(inner)) return inner
    return Object.fromEntries(Object.entries(inner).map(([key, each]) => [key, clean(each)]))
  }
  return clean(value) as T
}

function isLong(secret: string): boolean {
  return secret.length >= 8
}

function secretsInEnvironment(): readonly string[] {
  return Object.entries(process.env).flatMap(([name, value]) =>
    value !== undefined && isLong(value) && SECRET_NAME.test(name) ? [value] : [],
  )
}

const MAX_HEADERS_MS = 1_000

/** The headers a model sends, where its adapter shows them. Best effort: there is no public way to ask. */
async function secretsInHeaders(model: AiSdkModel | undefined): Promise<readonly string[]> {
  try {
    const { config } = (model ?? {}) as { config?: { headers?: unknown } }
    // Headers may have to be fetched first, which may be why the call failed.
    const given: unknown =
      typeof config?.headers === 'function'
        ? await waitAtMost(Promise.resolve(config.headers()), MAX_HEADERS_MS)
        : config?.headers
    return Object.entries(given ?? {}).flatMap(([name, value]) => {
      if (typeof value !== 'string' || !SECRET_HEADER.test(name)) return []
      return [value, value.replace(/^\S+\s+/, '')].filter(isLong)
    })
  } catch {
    return []
  }
}
