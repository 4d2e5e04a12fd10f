import type { Capability } from '../agent/capability.ts'
import { checkOptions, invalidOption } from '../agent/check-options.ts'
import { keyPatterns, redactor } from '../state/secrets.ts'

export type RedactOptions = {
  /** More to take out: patterns, and texts such as a password from the environment. What is undefined is left out. */
  readonly also?: readonly (RegExp | string | undefined)[]
}

/**
 * Takes keys out of what users say and what tools give back, before anything else sees it: neither the model, nor hooks,
 * events, traces, recordings and sessions. What is a key is told by its shape.
 */
export function redactSecrets(options: RedactOptions = {}): Capability {
  checkOptions('redactSecrets', options, ['also'])
  const { also = [] } = options
  const wrong = also.find((rule) => !(rule === undefined || typeof rule === 'string' || rule instanceof RegExp))
  if (wrong !== undefined) throw invalidOption('redactSecrets', '"also" is a list of patterns and texts', wrong)
  const rules = [...also.filter((rule) => rule !== undefined), ...keyPatterns]
  return { name: 'redactSecrets', redact: redactor(rules), notes: [note] }
}

const note =
  'Keys are taken out of what users say and what tools give back, by their shape; what a model writes is not.'
