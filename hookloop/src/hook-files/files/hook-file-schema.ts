import { answerKinds } from '../../actions/verdict.ts'
import type { Json, JsonObject } from '../../state/json.ts'
import { isAround, specOf, triggerNames, type HookTrigger } from '../../hooks/triggers.ts'
import { claudeEventNames, triggersOfEvent } from '../claude/events/claude-events.ts'
import { stepTypes } from './hook-condition.ts'
import { actionKinds, modes } from './hook-file.ts'

/**
 * The JSON Schema of a file of hooks, for editors. It is published as `hookloop/hooks.schema.json`, and a test holds that
 * file to this function.
 */
export function hookFileSchema(): JsonObject {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Hooks of Hookloop',
    type: 'object',
    additionalProperties: false,
    properties: {
      $schema: { type: 'string' },
      description: { type: 'string' },
      allow: allowSchema,
      hooks: { type: 'array', items: { $ref: '#/definitions/hook' } },
    },
    definitions: {
      hook: hookSchema(),
      when: whenSchema(),
      shell: shellSchema(),
      http: httpSchema(),
      prompt: promptSchema(),
      subagent: subagentSchema(),
      claude: claudeSchema(),
    },
  }
}

const triggers = triggerNames.filter((name) => !isAround(name))
const texts = { type: 'array', items: { type: 'string' } }
const flag = { type: 'boolean' }
const count = { type: 'integer', minimum: 1 }
const said = { type: 'string', pattern: '\\S' }

const allowSchema: JsonObject = {
  description: 'In your own file: what hooks of projects, plugins, skills and agents may do.',
  type: 'object',
  additionalProperties: false,
  properties: { env: texts, privateAddresses: flag },
}

function hookSchema(): JsonObject {
  return {
    type: 'object',
    additionalProperties: false,
    required: ['on', 'mode'],
    oneOf: actionKinds.map((kind) => ({ required: [kind] })),
    allOf: conditions(),
    properties: {
      name: { ...said, description: 'What it is called in the ledger. No two hooks of a file have the same name.' },
      on: {
        description: 'When it fires: a trigger, or several.',
        anyOf: [{ enum: triggers }, { type: 'array', minItems: 1, items: { enum: triggers } }],
      },
      mode: {
        enum: [...modes],
        description: 'guard decides and fails closed, hook changes and may block, observe watches.',
      },
      tool: {
        type: 'string',
        minLength: 1,
        description: 'The tools it is for: a name, one with * in it, or a /regular expression/.',
      },
      when: { $ref: '#/definitions/when' },
      priority: described('number', 'Higher first, among hooks of one mode. 0 unless told.'),
      timeoutMs: { type: 'number', exclusiveMinimum: 0, description: 'How long it may take.' },
      onFailure: { enum: ['continue', 'block'], description: 'For mode hook: what a failure means.' },
      stream: { enum: ['hold', 'after'], description: 'At afterInference: when an answer may be seen.' },
      ...Object.fromEntries(actionKinds.map((kind) => [kind, { $ref: `#/definitions/${kind}` }])),
    },
  }
}

/** What goes together. */
function conditions(): Json[] {
  const only = (allowed: readonly HookTrigger[]): JsonObject => ({
    properties: { on: { anyOf: [{ enum: allowed }, { type: 'array', items: { enum: allowed } }] } },
  })
  const has = (key: string, value?: JsonObject): JsonObject => ({
    required: [key],
    ...(value !== undefined && { properties: { [key]: value } }),
  })
  const where = (fits: (trigger: HookTrigger) => boolean): JsonObject => only(triggers.filter(fits))
  const events = claudeEventNames.flatMap((event) => {
    const at = triggersOfEvent(event)
    return at.length === 0 ? [] : [{ event, at }]
  })
  return [
    ifThen(
      has('mode', { const: 'guard' }),
      where((trigger) => specOf(trigger).guard.length > 0),
    ),
    ifThen(
      has('tool'),
      where((trigger) => trigger.endsWith('ToolUse')),
    ),
    ifThen(has('stream'), only(['afterInference'])),
    ifThen(has('onFailure'), has('mode', { const: 'hook' })),
    ifThen(
      has('onFailure', { const: 'block' }),
      where((trigger) => specOf(trigger).no !== undefined),
    ),
    ifThen(has('prompt'), has('mode', { enum: ['guard', 'hook'] })),
    ifThen(
      { required: ['prompt'], properties: { mode: { const: 'guard' } } },
      where((trigger) => trigger !== 'beforeInference'),
    ),
    ...events.map(({ event, at }) =>
      ifThen(
        has('claude', { type: 'object', required: ['event'], properties: { event: { const: event } } }),
        only([...at]),
      ),
    ),
  ]
}

function ifThen(
  ...parts: readonly [condition: JsonObject, consequence: JsonObject, otherwise?: JsonObject]
): JsonObject {
  const words = ['if', 'then', 'else']
  return Object.fromEntries(parts.map((part, i) => [words[i]!, part!]))
}

function whenSchema(): JsonObject {
  const list = { type: 'array', items: { $ref: '#/definitions/when' } }
  return {
    description: 'What must hold as well.',
    type: 'object',
    additionalProperties: false,
    minProperties: 1,
    properties: {
      metadata: described('object', 'Keys of the metadata and the values they must have; null: any.'),
      stepType: { enum: [...stepTypes] },
      all: list,
      any: list,
      not: { $ref: '#/definitions/when' },
    },
  }
}

function shellSchema(): JsonObject {
  return {
    description: 'A command that reads the event as JSON and prints an outcome.',
    anyOf: [
      said,
      {
        type: 'object',
        additionalProperties: false,
        oneOf: [{ required: ['command'] }, { required: ['args'] }],
        properties: {
          command: { ...said, description: 'A line for sh -c.' },
          args: {
            type: 'array',
            minItems: 1,
            items: { type: 'string', minLength: 1 },
            description: 'A program and its arguments.',
          },
          cwd: { type: 'string', minLength: 1, description: 'Where it runs. The project unless told.' },
          env: {
            type: 'object',
            propertyNames: {
              not: { pattern: '^(BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|IFS|LD_.*|DYLD_.*)$' },
            },
            additionalProperties: { type: 'string' },
          },
          passEnv: { ...texts, description: 'Variables of yours that it sees.' },
          conversation: flag,
          maxOutputBytes: count,
        },
      },
    ],
  }
}

function httpSchema(): JsonObject {
  const url = { type: 'string', pattern: '^https?://[A-Za-z0-9.-]+(:[0-9]{1,4})?(/[A-Za-z0-9/._?=&-]*)?$' }
  return {
    description: 'An address that the event is posted to, and that answers with an outcome.',
    anyOf: [
      url,
      {
        type: 'object',
        additionalProperties: false,
        required: ['url'],
        properties: {
          url,
          headers: {
            type: 'object',
            propertyNames: {
              pattern: '^[A-Za-z0-9-]+$',
              not: {
                pattern:
                  '^([Hh][Oo][Ss][Tt]|[Cc]onnection|[Cc]ontent-([Ll]ength|[Tt]ype)|[Tt]ransfer-[Ee]ncoding|[Uu]pgrade|[Ee]xpect|[Tt][Ee]|[Tt]railer)$',
              },
            },
            additionalProperties: { type: 'string' },
          },
          allowedEnvVars: { ...texts, description: 'The variables that headers may name.' },
          allowPrivate: described('boolean', 'Whether an address of this machine or its network may be asked.'),
          conversation: flag,
          maxOutputBytes: count,
        },
      },
    ],
  }
}

function promptSchema(): JsonObject {
  return {
    description: 'A model that is asked about the event.',
    anyOf: [
      said,
      {
        type: 'object',
        additionalProperties: false,
        required: ['prompt'],
        properties: {
          prompt: said,
          model: described('string', 'Such as anthropic/claude-haiku-4-5. The model of the conversation unless told.'),
          system: { type: 'string' },
          answer: { enum: [...answerKinds] },
          settings: { type: 'object' },
          conversation: flag,
          maxEventCharacters: count,
        },
      },
    ],
  }
}

function subagentSchema(): JsonObject {
  return {
    description: 'An agent that looks into the event.',
    anyOf: [
      said,
      {
        type: 'object',
        additionalProperties: false,
        required: ['prompt'],
        properties: {
          name: { type: 'string', minLength: 1 },
          prompt: said,
          instructions: { type: 'string' },
          tools: { ...texts, description: 'Tools of the agent that it gets. None unless told.' },
          model: { type: 'string' },
          answer: { enum: [...answerKinds] },
          maxSteps: count,
          maxTokens: count,
        },
      },
    ],
  }
}

function claudeSchema(): JsonObject {
  return {
    description: 'A handler that was written for Claude Code.',
    type: 'object',
    required: ['event'],
    ...ifThen(
      { required: ['type'], properties: { type: { const: 'http' } } },
      { required: ['url'] },
      { required: ['command'] },
    ),
    properties: {
      event: { enum: claudeEventNames.filter((event) => triggersOfEvent(event).length > 0) },
      matcher: { type: 'string' },
      type: { enum: ['command', 'http'] },
      command: { type: 'string' },
      args: texts,
      pluginRoot: described('string', 'The folder that the command knows as CLAUDE_PLUGIN_ROOT.'),
      url: { type: 'string', pattern: '^https?://' },
      if: { type: 'string' },
      timeout: { type: 'number', exclusiveMinimum: 0 },
    },
  }
}

function described(type: string, description: string): JsonObject {
  return { type, description }
}
