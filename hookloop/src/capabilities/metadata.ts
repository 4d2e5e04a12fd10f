import { hook, toNameTest, tool, type AgentState, type Capability, type Tool } from '../plugin.ts'
import { invalidOption, readOptions } from '../values/check-options.ts'
import { isStringList } from '../values/option-types.ts'
import type { Json, JsonObject } from '../values/json.ts'
import {
  nameProblem,
  nameValue,
  readNamed,
  withoutName,
  type NamedValues,
  type NamingLimits,
} from '../values/named-values.ts'
import { shorten } from '../values/text.ts'
import { objectSchema } from '../values/schema.ts'

/** Options of `metadata`. */
export type MetadataOptions = {
  /** The number of stored values. Default 50. */
  readonly maxKeys?: number
  /** The length of a key. Default 64. */
  readonly maxKeyChars?: number
  /** The size of one value as JSON in UTF-8. Default 65,536. */
  readonly maxValueBytes?: number
  /** The size of all values together. Default 262,144. */
  readonly maxTotalBytes?: number
  /** The nesting depth of a value. Default 32. */
  readonly maxDepth?: number
  /** Keys that are rejected, besides `hookloop` and `hookloop.*`; `*` matches anything. Default none. */
  readonly reserved?: readonly string[]
}

export const metadataDefaults = Object.freeze({
  maxKeys: 50,
  maxKeyChars: 64,
  maxValueBytes: 65_536,
  maxTotalBytes: 262_144,
  maxDepth: 32,
  reserved: Object.freeze([] as readonly string[]),
}) satisfies MetadataOptions

/** One key of the state's metadata holds everything the model stores, so that it cannot set a value that a guard reads. */
export const METADATA_KEY = 'hookloop.metadata'

const always: readonly string[] = ['hookloop', 'hookloop.*']

/**
 * Gives the model tools to store, read and list values in the state. They stay for the whole conversation.
 *
 * @example
 * const agent = createAgent({ model, use: [metadata({ maxKeys: 10 })] })
 * const run = await agent.run('Remember my address.')
 * getMetadata(run.state)
 */
export function metadata(options: MetadataOptions = {}): Capability {
  const policy = readOptions('metadata', options, metadataDefaults)
  if (!isStringList(policy.reserved))
    throw invalidOption('metadata', '"reserved" must be a list of keys, in which * matches anything', policy.reserved)
  const limits = limitsOf(policy)
  const store = storeTool(limits)
  const keep = hook(
    'afterToolUse',
    (ctx) => {
      if (ctx.toolExecution.status !== 'ok') return ctx
      const next = stored(getMetadata(ctx.state), ctx.toolCall.args, limits)
      if ('problem' in next) return ctx.withOutput(next.problem) // a hook replaced the result of the tool
      return ctx.withState((state) => state.withMetadata(METADATA_KEY, next.values))
    },
    { name: 'metadata.keep', bookkeeping: true, priority: 100, tool: store },
  )
  return {
    name: 'metadata',
    hooks: [keep],
    tools: [store, readTool(), listTool()],
    notes: [`The model stores up to ${policy.maxKeys} values in the state, under "${METADATA_KEY}".`],
  }
}

/** The values that the model has stored, by key. A guard must not rely on them: the model wrote them. */
export function getMetadata(state: AgentState): JsonObject {
  return readNamed(state.metadata[METADATA_KEY])
}

function limitsOf({ maxKeys, maxKeyChars, reserved, ...sizes }: Required<MetadataOptions>): NamingLimits {
  const tests = [...always, ...reserved].map(toNameTest)
  const isReserved = (key: string): boolean => tests.some((test) => test(key))
  return { ...sizes, word: 'key', maxNames: maxKeys, maxNameLength: maxKeyChars, isReserved }
}

type Stored = { readonly values: NamedValues; readonly message: string } | { readonly problem: string }

/** The values after one call, or why it failed. Null removes a value. */
function stored(values: NamedValues, { key = null, value = null }: JsonObject, limits: NamingLimits): Stored {
  if (value !== null) {
    const next = nameValue(values, [key, value], limits)
    return 'problem' in next
      ? next
      : { values: next.values, message: `Stored ${next.bytes} bytes under "${key as string}".` }
  }
  const problem = nameProblem(key, limits)
  if (problem !== undefined) return { problem }
  const isStored = Object.hasOwn(values, key as string)
  const message = isStored ? `Removed "${key as string}".` : `Nothing is stored under "${key as string}".`
  return { values: withoutName(values, key as string), message }
}

function storeTool(limits: NamingLimits): Tool<JsonObject, JsonObject> {
  const { maxNames, maxNameLength, maxValueBytes } = limits
  return tool({
    name: 'store_metadata',
    description:
      'Stores a value under a key, for later in this conversation; an existing value is replaced. ' +
      'Store null to remove it. ' +
      `At most ${maxNames} keys of up to ${maxNameLength} characters (letters, digits, _ . -, starting with a letter), ` +
      `and ${maxValueBytes} bytes of JSON per value.`,
    input: objectSchema(
      {
        key: { type: 'string', description: 'The key, such as "customer.address".' },
        value: { description: 'Any JSON value. null removes the stored one.' },
      },
      ['key', 'value'],
    ),
    execute: (args, { state }) => {
      const next = stored(getMetadata(state), args, limits)
      if ('problem' in next) throw new Error(next.problem)
      return next.message
    },
  })
}

function readTool(): Tool {
  return tool({
    name: 'read_metadata',
    description: 'Returns the value that was stored under a key with store_metadata.',
    input: objectSchema({ key: { type: 'string', description: 'The key it was stored under.' } }, ['key']),
    concurrent: true,
    execute: ({ key }, { state }) => {
      const values = getMetadata(state)
      const value = values[key as string]
      if (value !== undefined) return value
      throw new Error(`Nothing is stored under this key. ${listKeys(values)}`)
    },
  })
}

function listKeys(values: NamedValues): string {
  const keys = Object.keys(values)
  return keys.length === 0 ? 'There are no stored keys.' : `Stored keys: ${keys.join(', ')}.`
}

const PREVIEW_CHARS = 80

function listTool(): Tool {
  return tool({
    name: 'list_metadata',
    description: 'Lists the keys that were stored with store_metadata, with the size and the start of each value.',
    input: objectSchema({}),
    concurrent: true,
    execute: (_args, { state }) => Object.entries(getMetadata(state)).map(describeValue),
  })
}

function describeValue([key, value]: [string, Json]): JsonObject {
  const text = JSON.stringify(value)
  return { key, bytes: Buffer.byteLength(text), value: shorten(text, PREVIEW_CHARS) }
}
