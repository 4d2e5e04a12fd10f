import { existsSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Agent } from '../../agent/agent.ts'
import type { createAgent } from '../../create-agent.ts'
import { messageOf } from '../../errors.ts'
import { UsageError } from '../usage-error.ts'

export type CreateAgentOptions = Parameters<typeof createAgent>[0]

/** What an agent file may export: an agent, or what one is made of, with or without a model. */
export type AgentFile =
  | { readonly agent: Agent<unknown> }
  | { readonly options: Omit<CreateAgentOptions, 'model'> & Partial<Pick<CreateAgentOptions, 'model'>> }

/** The agent that a file has as its default export. */
export async function loadAgent(file: string): Promise<AgentFile> {
  const exported = await loadDefault(file, '--agent')
  if (isAgent(exported)) return { agent: exported }
  if (typeof exported === 'object' && exported !== null && !Array.isArray(exported)) {
    return { options: exported }
  }
  throw new UsageError(
    `--agent ${file}: its default export must be an agent, or the options of createAgent. ` +
      'Write: export default createAgent({ … })',
  )
}

/** What a module has as its default export. `option` is what named it, for when something is wrong with it. */
export async function loadDefault(file: string, option: string): Promise<unknown> {
  const path = resolve(file)
  if (!existsSync(path)) throw new UsageError(`${option} ${file}: there is no such file.`)
  shareLibrary()
  try {
    const loaded = (await import(pathToFileURL(path).href)) as { readonly default?: unknown }
    return loaded.default
  } catch (thrown) {
    throw new UsageError(`${option} ${file} cannot be loaded: ${messageOf(thrown)}${hintFor(file, thrown)}`, {
      cause: thrown,
    })
  }
}

/** Files of a package are not modules when it says so, as it does after `npm init`. */
function hintFor(file: string, thrown: unknown): string {
  const extension = /\.([jt]s)$/.exec(file)?.[1]
  const isNoModule =
    thrown instanceof SyntaxError && /outside a module|token 'export'|bodies of modules/.test(thrown.message)
  if (extension === undefined || !isNoModule) return ''
  return `\nThe package it is in is not of modules: rename it to .m${extension}, or run: npm pkg set type=module`
}

function isAgent(value: unknown): value is Agent<unknown> {
  const { run, stream, describe } = (value ?? {}) as { readonly [K in keyof Agent]?: unknown }
  return typeof run === 'function' && typeof stream === 'function' && typeof describe === 'function'
}

let isShared = false

/**
 * Lets every file that imports `hookloop` get the copy that runs this command. A hook or a tool is known by identity, so
 * those of another copy, or of the sources beside a build, would be strangers.
 */
function shareLibrary(): void {
  if (isShared) return
  isShared = true
  const isSource = import.meta.url.endsWith('.ts')
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier !== 'hookloop' && !specifier.startsWith('hookloop/')) return next(specifier, context)
      const conditions = isSource ? [...context.conditions, 'hookloop-source'] : context.conditions
      return next(specifier, { ...context, conditions, parentURL: import.meta.url })
    },
  })
}
