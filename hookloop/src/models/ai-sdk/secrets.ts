import type { AiSdkModel, ModelReply } from '../../core/state/inference.ts'
import type { JsonObject } from '../../values/json.ts'
import { environmentSecrets, redactor } from '../../values/secrets.ts'
import { waitAtMost } from '../../system/timeout.ts'

const SECRET_HEADER = /auth|key|token|secret|cookie/i
const MIN_SECRET_CHARS = 8

/** What keys look like, for those that come neither from the environment nor from a header. */
const keyShapes: readonly RegExp[] = [
  /(?<=")[^"]*(?=" is an invalid header value)/g, // how fetch reports a key that contains a line break
  /\b(?:sk|pk|rk|gsk|xai|hf|ghp|key|api)[-_][A-Za-z0-9_*-]{8,}/g,
  /\bAIza[A-Za-z0-9_-]{10,}/g,
  /\bBearer\s+[^\s"',]+/gi,
  /\bBasic\s+[A-Za-z0-9+/]{12,}={0,2}/g,
  /\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  /(?<=[?&][\w-]{0,30}(?:key|token|secret|password|sig|signature)=)[^&\s"']+/gi,
  /(?<=:\/\/)[^\s/@"']+(?=@)/g,
]

/** Removes keys from a text. A provider may repeat the key it was sent, and no error message may contain it. */
export async function redactKeys(text: string, model: AiSdkModel | undefined): Promise<string> {
  return redactor([...(await secretsOf(model)), ...keyShapes])(text) as string
}

/**
 * Removes keys from the warnings, the model id and the provider options of a reply. What the model wrote stays as it is.
 * Only warnings are searched for what merely looks like a key: an id or a signature may look like one.
 */
export async function redactReply<R extends ModelReply>(reply: R, model: AiSdkModel): Promise<R> {
  const { content, warnings, modelId } = reply
  const hasOptions = content.some((part) => part.providerOptions !== undefined)
  if (warnings === undefined && modelId === undefined && !hasOptions) return reply
  const secrets = await secretsOf(model)
  const redact = redactor(secrets)
  return {
    ...reply,
    ...(hasOptions && {
      content: content.map((part) =>
        part.providerOptions === undefined
          ? part
          : { ...part, providerOptions: redact(part.providerOptions) as JsonObject },
      ),
    }),
    ...(warnings !== undefined && { warnings: redactor([...secrets, ...keyShapes])(warnings) as readonly string[] }),
    ...(typeof modelId === 'string' && { modelId: redact(modelId) as string }),
  }
}

/** Every form in which a key may come back, the longest first: one key may be a prefix of another. */
async function secretsOf(model: AiSdkModel | undefined): Promise<readonly string[]> {
  const plain = [...environmentSecrets(process.env), ...(await secretsInHeaders(model))]
  const forms = plain.flatMap((key) => [
    key,
    key.trim(),
    encodeURIComponent(key.toWellFormed()),
    JSON.stringify(key).slice(1, -1),
    Buffer.from(key).toString('base64'),
  ])
  return [...new Set(forms)].filter(isLong).toSorted((a, b) => b.length - a.length)
}

function isLong(secret: string): boolean {
  return secret.length >= MIN_SECRET_CHARS
}

const HEADERS_TIMEOUT_MS = 1_000

/** The headers a model sends, if its adapter exposes them. Best effort: the specification has no way to read them. */
async function secretsInHeaders(model: AiSdkModel | undefined): Promise<readonly string[]> {
  try {
    const { config } = (model ?? {}) as { config?: { headers?: unknown } }
    // Headers may have to be fetched first, and that may be what the call failed on.
    const given: unknown =
      typeof config?.headers === 'function'
        ? await waitAtMost(Promise.resolve(config.headers()), HEADERS_TIMEOUT_MS)
        : config?.headers
    return Object.entries(given ?? {}).flatMap(([name, value]) => {
      if (typeof value !== 'string' || !SECRET_HEADER.test(name)) return []
      return [value, value.replace(/^\S+\s+/, '')].filter(isLong)
    })
  } catch {
    return []
  }
}
