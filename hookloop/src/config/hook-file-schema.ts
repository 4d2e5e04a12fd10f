import type { JsonObject } from '../data/json.ts'
import { isAround, triggerNames } from '../hooks/triggers.ts'
import { claudeEventNames, eventSpec, handlerTypes } from './claude/events.ts'
import { modes } from './hook-file.ts'

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
    required: ['hooks'],
    properties: {
      $schema: { type: 'string' },
      description: { type: 'string' },
      hooks: { type: 'array', items: { $ref: '#/definitions/hook' } },
    },
    definitions: {
      hook: hookSchema(),
      when: whenSchema(),
      shell: shellSchema(),
      http: httpSchema(),
      claude: claudeSchema(),
    },
  }
}

const triggers = triggerNames.filter((name) => !isAround(name))
const kinds = ['shell', 'http', 'claude']

function hookSchema(): JsonObject {
  return {
    type: 'object',
    additionalProperties: false,
    required: ['on', 'mode'],
    oneOf: kinds.map((kind) => ({ required: [kind] })),
    properties: {
      name: described('string', 'What it is called in the ledger. No two hooks may have the same name.'),
      on: {
        description: 'When it fires: a trigger, or several.',
        anyOf: [{ enum: triggers }, { type: 'array', minItems: 1, items: { enum: triggers } }],
      },
      mode: {
        enum: [...modes],
        description: 'guard decides and fails closed, hook changes and may block, observe watches.',
      },
      tool: described('string', 'The tools it is for: a name, one with * in it, or a /regular expression/.'),
      when: { $ref: '#/definitions/when' },
      priority: described('number', 'Higher first, among hooks of one mode. 0 unless told.'),
      timeoutMs: { type: 'number', exclusiveMinimum: 0, description: 'How long it may take.' },
      onFailure: { enum: ['continue', 'block'], description: 'For mode hook: what a failure means.' },
      stream: { enum: ['hold', 'window', 'after'], description: 'At afterInference: when an answer may be seen.' },
      shell: { $ref: '#/definitions/shell' },
      http: { $ref: '#/definitions/http' },
      claude: { $ref: '#/definitions/claude' },
    },
  }
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
      stepType: { enum: ['toolExecution', 'finalResponse', 'error'] },
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
      { type: 'string' },
      {
        type: 'object',
        additionalProperties: false,
        properties: {
          command: described('string', 'A line for sh -c.'),
          args: { type: 'array', minItems: 1, items: { type: 'string' }, description: 'A program and its arguments.' },
          cwd: described('string', 'Where it runs. The project unless told.'),
          env: { type: 'object', additionalProperties: { type: 'string' } },
          maxOutputBytes: { type: 'number', exclusiveMinimum: 0 },
        },
      },
    ],
  }
}

function httpSchema(): JsonObject {
  return {
    description: 'An address that the event is posted to, and that answers with an outcome.',
    anyOf: [
      { type: 'string' },
      {
        type: 'object',
        additionalProperties: false,
        required: ['url'],
        properties: {
          url: described('string', 'http: or https:.'),
          headers: { type: 'object', additionalProperties: { type: 'string' } },
          allowedEnvVars: { type: 'array', items: { type: 'string' } },
          allowPrivate: described('boolean', 'Whether an address of this machine or its network may be asked.'),
          maxOutputBytes: { type: 'number', exclusiveMinimum: 0 },
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
    properties: {
      event: { enum: claudeEventNames.filter((event) => eventSpec(event).trigger !== undefined) },
      matcher: { type: 'string' },
      type: { enum: [...handlerTypes] },
      command: { type: 'string' },
      args: { type: 'array', items: { type: 'string' } },
      url: { type: 'string' },
      if: { type: 'string' },
      timeout: { type: 'number', exclusiveMinimum: 0 },
    },
  }
}

function described(type: string, description: string): JsonObject {
  return { type, description }
}
