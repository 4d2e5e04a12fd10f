import type { Capability } from '../agent/capability.ts'
import { checkOptions, checkPositiveIntegers, definedOptions, invalidOption } from '../agent/check-options.ts'
import { tool, type Tool } from '../agent/tool.ts'
import type { AgentState } from '../state/agent-state.ts'
import type { Json, JsonObject } from '../state/json.ts'
import {
  nameProblem,
  nameValue,
  readNamed,
  withoutName,
  type NamedValues,
  type NamingLimits,
} from '../state/named-values.ts'
import { hook } from '../hooks/hook.ts'
import { toNameTest } from '../hooks/patterns.ts'

export type MetadataOptions = {
  /** How many values may be kept at once. */
  readonly maxKeys?: number
  readonly maxKeyLength?: number
  /** Of one value, as JSON text in UTF-8. */
  readonly maxValueBytes?: number
  /** Of all values together. */
  readonly maxTotalBytes?: number
  /** How deep lists and objects may be nested. */
  readonly maxDepth?: number
  /** Keys that are refused, `*` standing for anything, beside `hookloop` and `hookloop.*`, which always are. */
  readonly reserved?: readonly string[]
}

export const metadataPolicy = Object.freeze({
  maxKeys: 50,
  maxKeyLength: 64,
  maxValueBytes: 65_536,
  maxTotalBytes: 262_144,
  maxDepth: 32,
  reserved: Object.freeze([] as readonly string[]),
}) satisfies MetadataOptions

/** All of it lives under this one key of the state's metadata, where no guard looks for a role. */
export const METADATA_KEY = 'hookloop.metadata'

const always: readonly string[] = ['hookloop', 'hookloop.*']

/** Values that the model stores, reads and lists, and that stay with the state. */
export function metadata(options: MetadataOptions = {}): Capability {
  checkOptions('metadata', options, Object.keys(metadataPolicy))
  const policy = { ...metadataPolicy, ...definedOptions(options) }
  checkPositiveIntegers('metadata', policy, ['maxKeys', 'maxKeyLength', 'maxValueBytes', 'maxTotalBytes', 'maxDepth'])
  if (!Array.isArray(policy.reserved) || !policy.reserved.every((each) => typeof each === 'string')) {
    throw invalidOption(
      'metadata',
      '"reserved" must be a list of keys, in which * stands for anything',
      policy.reserved,
    )
  }
  const limits = limitsOf(policy)
  const store = storeTool(limits)
  const keep = hook(
    'afterToolUse',
    (ctx) => {
      if (ctx.toolExecution.status !== 'ok') return ctx
      const next = stored(getMetadata(ctx.state), ctx.toolCall.args, limits)
      if ('problem' in next) return ctx.withOutput(next.problem) // somebody answered in the tool's place
      return ctx.withState((state) => state.withMetadata(METADATA_KEY, next.values))
    },
    { name: 'metadata.keep', priority: 100, tool: store },
  )
  return {
    name: 'metadata',
    hooks: [keep],
    tools: [store, readTool(), listTool()],
    notes: [`The model keeps up to ${policy.maxKeys} values of its own in the state, under "${METADATA_KEY}".`],
  }
}

/** What the model has stored, by key. It is the model's word: nothing that a guard may rely on. */
export function getMetadata(state: AgentState): JsonObject {
  return readNamed(state.metadata[METADATA_KEY])
}

function limitsOf({ maxKeys, maxKeyLength, reserved, ...sizes }: Required<MetadataOptions>): NamingLimits {
  const tests = [...always, ...reserved].map(toNameTest)
  const isReserved = (key: string): boolean => tests.some((test) => test(key))
  return { ...sizes, word: 'key', maxNames: maxKeys, maxNameLength: maxKeyLength, isReserved }
}

type Stored = { readonly values: NamedValues; readonly words: string } | { readonly problem: string }

/** What is stored after one call, or why it cannot be. Null removes. */
function stored(values: NamedValues, { key = null, value = null }: JsonObject, limits: NamingLimits): Stored {
  if (value !== null) {
    const next = nameValue(values, [key, value], limits)
    return 'problem' in next
      ? next
      : { values: next.values, words: `Stored ${next.bytes} bytes under "${key as string}".` }
  }
  const problem = nameProblem(key, limits)
  if (problem !== undefined) return { problem }
  const isThere = Object.hasOwn(values, key as string)
  const words = isThere ? `Removed "${key as string}".` : `There was nothing under "${key as string}".`
  return { values: withoutName(values, key as string), words }
}

function storeTool(limits: NamingLimits): Tool<JsonObject, JsonObject> {
  const { maxNames, maxNameLength, maxValueBytes } = limits
  return tool({
    name: 'store_metadata',
    description:
      'Keeps a value under a key, for later in this conversation; a value that is there is replaced. ' +
      'Store null to remove it. ' +
      `At most ${maxNames} keys of up to ${maxNameLength} characters (letters, digits, _ . - and a letter first), ` +
      `and ${maxValueBytes} bytes of JSON per value.`,
    input: {
      type: 'object',
      properties: {
        key: { type: 'string', description: 'The name to find it by, such as "customer.address".' },
        value: { description: 'Any JSON value. null removes what is there.' },
      },
      required: ['key', 'value'],
      additionalProperties: false,
    },
    execute: (args, { state }) => {
      const next = stored(getMetadata(state), args, limits)
      if ('problem' in next) throw new Error(next.problem)
      return next.words
    },
  })
}

function readTool(): Tool {
  return tool({
    name: 'read_metadata',
    description: 'Gives the value that was stored under a key with store_metadata.',
    input: {
      type: 'object',
      properties: { key: { type: 'string', description: 'The name it was stored by.' } },
      required: ['key'],
      additionalProperties: false,
    },
    concurrent: true,
    execute: ({ key }, { state }) => {
      const values = getMetadata(state)
      const value = values[key as string]
      if (value !== undefined) return value
      throw new Error(`Nothing is stored under that key. ${wordKeys(values)}`)
    },
  })
}

function wordKeys(values: NamedValues): string {
  const keys = Object.keys(values)
  return keys.length === 0 ? 'Nothing is stored at all.' : `There is: ${keys.join(', ')}.`
}

const PREVIEW = 80

function listTool(): Tool {
  return tool({
    name: 'list_metadata',
    description: 'Lists the keys that were stored with store_metadata, with the size and the beginning of each value.',
    input: { type: 'object', properties: {}, additionalProperties: false },
    concurrent: true,
    execute: (_args, { state }) => Object.entries(getMetadata(state)).map(describeValue),
  })
}

function describeValue([key, value]: [string, Json]): JsonObject {
  const text = JSON.stringify(value)
  const shown = text.length <= PREVIEW ? text : `${text.slice(0, PREVIEW).toWellFormed()}…`
  return { key, bytes: Buffer.byteLength(text), value: shown }
}
