import { createRequire } from 'node:module'
import { AgentError, messageOf, clause } from '../errors.ts'

// Packages that most programs do not need. They are loaded on first use, synchronously, because the functions that need
// them are synchronous. The build makes them part of the package, see build.mjs, so that a bundler finds them.

export const loadRe2 = /* @__PURE__ */ onFirstUse(
  () => createRequire(import.meta.url)('re2js') as typeof import('re2js'),
)

export const loadDiff = /* @__PURE__ */ onFirstUse(
  () => createRequire(import.meta.url)('diff') as typeof import('diff'),
)

export const loadYaml = /* @__PURE__ */ onFirstUse(
  () => createRequire(import.meta.url)('yaml') as typeof import('yaml'),
)

export const loadPicomatch = /* @__PURE__ */ onFirstUse(
  () => createRequire(import.meta.url)('picomatch') as typeof import('picomatch'),
)

export const loadJsonSchema = /* @__PURE__ */ onFirstUse(
  () => createRequire(import.meta.url)('@cfworker/json-schema') as typeof import('@cfworker/json-schema'),
)

/** Loads a part of Hookloop with the first call. */
export function onFirstUse<T>(load: () => T): () => T {
  let loaded: T | undefined
  return () => {
    try {
      return (loaded ??= load())
    } catch (error) {
      throw new AgentError(
        'PACKAGE_INCOMPLETE',
        `A part of Hookloop cannot be loaded: ${clause(messageOf(error))}. Install hookloop again, or copy all of its files.`,
        { cause: error },
      )
    }
  }
}
