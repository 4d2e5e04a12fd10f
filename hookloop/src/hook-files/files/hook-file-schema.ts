import { answerKinds } from '../../actions/verdict.ts'
import { stepTypes } from '../../core/state/execution.ts'
import type { JsonObject } from '../../values/json.ts'
import { settingSchemas } from '../../core/state/model-settings.ts'
import { isAround, triggerNames } from '../../core/hooks/triggers.ts'
import { NOT_BLANK } from '../schema-check.ts'

export const modes = ['guard', 'hook', 'observe'] as const
export const actionKinds = ['shell', 'http', 'prompt', 'subagent'] as const
export type ActionKind = (typeof actionKinds)[number]

/** The triggers that a hook of a file can have. */
export const fileTriggers = triggerNames.filter((name) => !isAround(name))

/**
 * The JSON Schema of a hook file, for editors. It is published as `hookloop/hooks.schema.json`.
 *
 * ```json
 * { "$schema": "./node_modules/hookloop/hooks.schema.json", "hooks": [] }
 * ```
 */
export function hookFileSchema(): JsonObject {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Hooks of Hookloop',
    ...fileSchema({ $ref: '#/definitions/hook' }),
    definitions: { hook: hookSchema, ...definitions() },
  }
}

/** The schema of a file without its entries, which are validated one by one. */
export function fileSchema(entry?: JsonObject): JsonObject {
  return object({
    $schema: string,
    description: string,
    allow: {
      ...object({ env: strings, privateAddresses: flag }),
      description: 'Only in the user file: what hooks of projects, plugins, skills and agents may do.',
    },
    hooks: { type: 'array', ...(entry !== undefined && { items: entry }) },
  })
}

/** The schema of one entry. Rules that concern several fields are checked by the functions that create hooks and actions. */
export function entrySchema(): JsonObject {
  return { ...hookSchema, definitions: definitions() }
}

const string: JsonObject = { type: 'string' }
const named: JsonObject = { type: 'string', minLength: 1 }
const text: JsonObject = { type: 'string', pattern: NOT_BLANK }
const strings: JsonObject = { type: 'array', items: string }
const flag: JsonObject = { type: 'boolean' }
const count: JsonObject = { type: 'integer', minimum: 1 }
const positive: JsonObject = { type: 'number', exclusiveMinimum: 0 }
const trigger: JsonObject = { type: 'string', enum: fileTriggers }
const answer: JsonObject = { enum: [...answerKinds] }

function object(properties: JsonObject, more: JsonObject = {}): JsonObject {
  return { type: 'object', additionalProperties: false, ...more, properties }
}

/** An action with options, or only with its most important one. */
function action(description: string, short: JsonObject, options: JsonObject, more: JsonObject): JsonObject {
  return { description, anyOf: [short, object(options, more)] }
}

const hookSchema: JsonObject = object(
  {
    name: { ...text, description: 'The name in the ledger. It is unique in its file.' },
    on: {
      description: 'When it fires: a trigger, or several.',
      anyOf: [trigger, { type: 'array', minItems: 1, items: trigger }],
    },
    mode: {
      enum: [...modes],
      description: 'guard decides and fails closed, hook changes and may block, observe only reads.',
    },
    tool: { ...named, description: 'The tools it applies to: a name, a name with *, or a /regular expression/.' },
    when: { $ref: '#/definitions/when' },
    priority: { type: 'number', description: 'Higher first, among hooks of one mode. Default: 0.' },
    timeoutMs: { ...positive, description: 'How long it may take.' },
    onFailure: { enum: ['continue', 'block'], description: 'For mode hook: the effect of a failure.' },
    stream: { enum: ['hold', 'after'], description: 'At afterInference: when an answer is streamed to the user.' },
    ...Object.fromEntries(actionKinds.map((kind) => [kind, { $ref: `#/definitions/${kind}` }])),
  },
  { required: ['on', 'mode'], oneOf: actionKinds.map((kind) => ({ required: [kind] })) },
)

function definitions(): JsonObject {
  const when = { $ref: '#/definitions/when' }
  const url = { type: 'string', pattern: '^[Hh][Tt][Tt][Pp][Ss]?:' }
  return {
    when: {
      ...object(
        {
          metadata: {
            type: 'object',
            description: 'Keys of the metadata and their values; null means any value.',
          },
          stepType: { enum: [...stepTypes] },
          all: { type: 'array', items: when },
          any: { type: 'array', items: when },
          not: when,
        },
        { minProperties: 1 },
      ),
      description: 'Conditions that must hold for the hook to fire.',
    },
    shell: action(
      'A command that reads the event as JSON and prints an outcome.',
      text,
      {
        command: { ...text, description: 'A command line for sh -c.' },
        args: { ...strings, minItems: 1, description: 'A program and its arguments.' },
        cwd: { ...named, description: 'The working directory. Default: the project.' },
        env: { type: 'object', additionalProperties: string },
        passEnv: { ...strings, description: 'Variables of your environment that are passed to it.' },
        conversation: flag,
        maxOutputBytes: count,
      },
      { oneOf: [{ required: ['command'] }, { required: ['args'] }] },
    ),
    http: action(
      'A URL that the event is posted to, and that responds with an outcome.',
      url,
      {
        url,
        headers: { type: 'object', additionalProperties: string },
        allowedEnvVars: { ...strings, description: 'Variables of your environment that headers may contain.' },
        allowPrivate: { ...flag, description: 'Allows addresses of this machine and its network.' },
        conversation: flag,
        maxOutputBytes: count,
      },
      { required: ['url'] },
    ),
    prompt: action(
      'A model that judges the event.',
      text,
      {
        prompt: text,
        model: { ...string, description: 'Such as anthropic/claude-haiku-4-5. Default: the model of the agent.' },
        system: string,
        answer,
        settings: object(settingSchemas),
        conversation: flag,
        maxEventChars: count,
      },
      { required: ['prompt'] },
    ),
    subagent: action(
      'An agent that inspects the event.',
      text,
      {
        name: named,
        prompt: text,
        instructions: string,
        tools: { ...strings, description: 'Tools of the agent that it may use. Default: none.' },
        model: string,
        answer,
        maxSteps: count,
        maxTokens: count,
      },
      { required: ['prompt'] },
    ),
  }
}
