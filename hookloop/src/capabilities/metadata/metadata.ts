import type { Capability } from '../../agent/capability.ts'
import { checkKnown, checkWhole, definedOptions, invalidOption } from '../../agent/options.ts'
import { tool, type Tool } from '../../agent/tool.ts'
import type { AgentState } from '../../data/agent-state.ts'
import type { Json, JsonObject } from '../../data/json.ts'
import { hook } from '../../hooks/hook.ts'
import { toNameTest } from '../../hooks/patterns.ts'
import { readEntries, storeEntry, type Entries, type Limits } from './entries.ts'

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
  checkKnown('metadata', options, Object.keys(metadataPolicy))
  const policy = { ...metadataPolicy, ...definedOptions(options) }
  checkWhole('metadata', policy, ['maxKeys', 'maxKeyLength', 'maxValueBytes', 'maxTotalBytes', 'maxDepth'])
  if (!Array.isArray(policy.reserved) || !policy.reserved.every((each) => typeof each === 'string')) {
    throw invalidOption(
      'metadata',
      '"reserved" must be a list of keys, in which * stands for anything',
      policy.reserved,
    )
  }
  const tests = [...always, ...policy.reserved].map(toNameTest)
  const limits: Limits = { ...policy, isReserved: (key) => tests.some((test) => test(key)) }
  const store = storeTool(limits)
  const keep = hook(
    'afterToolUse',
    (ctx) => {
      if (ctx.toolExecution.status !== 'ok') return ctx
      const next = storeEntry(readEntries(ctx.state.metadata[METADATA_KEY]), ctx.toolCall.args, limits)
      if ('problem' in next) return ctx.withOutput(next.problem) // somebody answered in the tool's place
      return ctx.withState((state) => state.withMetadata(METADATA_KEY, next.entries))
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
export function storedMetadata(state: AgentState): JsonObject {
  return readEntries(state.metadata[METADATA_KEY])
}

function storeTool(limits: Limits): Tool<JsonObject, JsonObject> {
  const { maxKeys, maxKeyLength, maxValueBytes } = limits
  return tool({
    name: 'store_metadata',
    description:
      'Keeps a value under a key, for later in this conversation; a value that is there is replaced. ' +
      'Store null to remove it. ' +
      `At most ${maxKeys} keys of up to ${maxKeyLength} characters (letters, digits, _ . - and a letter first), ` +
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
      const next = storeEntry(readEntries(state.metadata[METADATA_KEY]), args, limits)
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
      const entries = readEntries(state.metadata[METADATA_KEY])
      const value = entries[key as string]
      if (value !== undefined) return value
      throw new Error(`Nothing is stored under that key. ${wordKeys(entries)}`)
    },
  })
}

function wordKeys(entries: Entries): string {
  const keys = Object.keys(entries)
  return keys.length === 0 ? 'Nothing is stored at all.' : `There is: ${keys.join(', ')}.`
}

const PREVIEW = 80

function listTool(): Tool {
  return tool({
    name: 'list_metadata',
    description: 'Lists the keys that were stored with store_metadata, with the size and the beginning of each value.',
    input: { type: 'object', properties: {}, additionalProperties: false },
    concurrent: true,
    execute: (_args, { state }) => Object.entries(readEntries(state.metadata[METADATA_KEY])).map(describeEntry),
  })
}

function describeEntry([key, value]: [string, Json]): JsonObject {
  const text = JSON.stringify(value)
  const shown = text.length <= PREVIEW ? text : `${text.slice(0, PREVIEW).toWellFormed()}…`
  return { key, bytes: Buffer.byteLength(text), value: shown }
}
