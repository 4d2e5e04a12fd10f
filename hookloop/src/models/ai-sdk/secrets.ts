import type { AiSdkModel } from '../../data/inference.ts'

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
  /(?<=[?&](?:api[-_]?)?key=)[^&\s"']+/gi,
  /(?<=:\/\/)[^\s/@"']+(?=@)/g,
]

/** A provider may repeat the key it was sent. Nothing that leaves this folder may. */
export async function withoutSecrets(text: string, model: AiSdkModel | undefined): Promise<string> {
  const secrets = [...secretsInEnvironment(), ...(await secretsInHeaders(model))]
  let clean = text
  // The longest first: one key may be the beginning of another.
  for (const secret of secrets.toSorted((a, b) => b.length - a.length)) clean = clean.replaceAll(secret, REPLACEMENT)
  for (const pattern of LOOKS_SECRET) clean = clean.replace(pattern, REPLACEMENT)
  return clean
}

function secretsInEnvironment(): readonly string[] {
  return Object.entries(process.env).flatMap(([name, value]) =>
    value !== undefined && value.length >= 8 && SECRET_NAME.test(name) ? [value] : [],
  )
}

/** The headers a model sends, where its adapter shows them. Best effort: there is no public way to ask. */
async function secretsInHeaders(model: AiSdkModel | undefined): Promise<readonly string[]> {
  try {
    const { config } = (model ?? {}) as { config?: { headers?: unknown } }
    const given: unknown = typeof config?.headers === 'function' ? await config.headers() : config?.headers
    return Object.entries(given ?? {}).flatMap(([name, value]) => {
      if (typeof value !== 'string' || !SECRET_HEADER.test(name)) return []
      return [value, value.replace(/^\S+\s+/, '')].filter((secret) => secret.length >= 8)
    })
  } catch {
    return []
  }
}
