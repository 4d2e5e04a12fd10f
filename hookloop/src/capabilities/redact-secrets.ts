import { optionTypes } from '../values/option-types.ts'
import type { Capability } from '../plugin.ts'
import { checkOptions } from '../values/check-options.ts'
import { keyPatterns, redactor } from '../values/secrets.ts'

/** Options of `redactSecrets`. */
export type RedactSecretsOptions = {
  /** Further patterns, and strings such as a password from the environment. Undefined entries are ignored. Default none. */
  readonly also?: readonly (RegExp | string | undefined)[]
}

/**
 * Removes API keys, tokens and private keys from user input and tool results before they reach the model, hooks, events,
 * traces, recordings or sessions. Keys are recognized by their shape.
 *
 * @example
 * createAgent({ model, use: [redactSecrets({ also: [process.env.DB_PASSWORD, /INT-\d{6}/] })] })
 */
export function redactSecrets(options: RedactSecretsOptions = {}): Capability {
  checkOptions('redactSecrets', options, { also: optionTypes.secrets })
  const { also = [] } = options
  const rules = [...also.filter((rule) => rule !== undefined), ...keyPatterns]
  return { name: 'redactSecrets', redact: redactor(rules), notes: [note] }
}

const note = 'Keys are removed from user input and tool results by their shape, not from what the model writes.'
