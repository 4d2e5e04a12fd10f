import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, suite, test } from 'node:test'
import { tool, type Capability } from 'hookloop'
import { agentDefinitions, agentDefinitionsDefaults } from '../hookloop/src/capabilities/subagents/agent-definitions.ts'
import { bash, bashDefaults } from '../hookloop/src/capabilities/bash/bash.ts'
import { files } from '../hookloop/src/capabilities/files/files.ts'
import { filesDefaults } from '../hookloop/src/capabilities/files/options.ts'
import { mcp } from '../hookloop/src/capabilities/mcp/mcp.ts'
import { mcpDefaults } from '../hookloop/src/capabilities/mcp/settings.ts'
import { metadata, metadataDefaults } from '../hookloop/src/capabilities/metadata.ts'
import { selfCritique, selfCritiqueDefaults } from '../hookloop/src/capabilities/self-critique.ts'
import { skillsDefaults } from '../hookloop/src/capabilities/skills/options.ts'
import { skills } from '../hookloop/src/capabilities/skills/skills.ts'
import {
  structuredOutput,
  structuredOutputDefaults,
} from '../hookloop/src/capabilities/structured-output/structured-output.ts'
import { subagents, subagentsDefaults } from '../hookloop/src/capabilities/subagents/subagents.ts'
import { summarization, summarizationDefaults } from '../hookloop/src/capabilities/summarization/summarization.ts'
import { tasks, tasksDefaults } from '../hookloop/src/capabilities/tasks/tasks.ts'
import { toolRegistry, toolRegistryDefaults } from '../hookloop/src/capabilities/tool-registry/tool-registry.ts'

// The pages of capabilities have two tables, which must match the code: hooks and tools. Options are in the API.

const invoice = { type: 'object', properties: { total: { type: 'number' } } } as const

const spare = tool({ name: 'spare', description: 'One of hundreds.', input: { type: 'object' }, execute: () => 'done' })

const reader = { description: 'Reads.', instructions: 'Read.' }

const server = 'hookloop/src/capabilities/mcp/real-server.fixture.ts'
const connected = await mcp({ servers: { real: { command: process.execPath, args: [server] } } })
after(() => connected.close())

/** Tools of the application or of a server. */
const external = /^(?:spare|mcp__.*)$/

type Page = { readonly capability: Capability; readonly defaults: object; readonly options: string }

const pages: { readonly [page: string]: Page } = {
  'agent-definitions': {
    capability: agentDefinitions(),
    defaults: agentDefinitionsDefaults,
    options: 'subagents/agent-definitions',
  },
  bash: { capability: bash({ sandbox: 'off' }), defaults: bashDefaults, options: 'bash/bash' },
  files: { capability: files({ root: '.' }), defaults: filesDefaults, options: 'files/options' },
  mcp: { capability: connected, defaults: mcpDefaults, options: 'mcp/settings' },
  metadata: { capability: metadata(), defaults: metadataDefaults, options: 'metadata' },
  'self-critique': { capability: selfCritique(), defaults: selfCritiqueDefaults, options: 'self-critique' },
  skills: { capability: skills({ dirs: [] }), defaults: skillsDefaults, options: 'skills/options' },
  subagents: {
    capability: subagents({ agents: { reader } }),
    defaults: subagentsDefaults,
    options: 'subagents/subagents',
  },
  'structured-output': {
    capability: structuredOutput({ schemas: { invoice } }),
    defaults: structuredOutputDefaults,
    options: 'structured-output/structured-output',
  },
  summarization: {
    capability: summarization(),
    defaults: summarizationDefaults,
    options: 'summarization/summarization',
  },
  tasks: { capability: tasks(), defaults: tasksDefaults, options: 'tasks/tasks' },
  'tool-registry': {
    capability: toolRegistry({ tools: [spare] }),
    defaults: toolRegistryDefaults,
    options: 'tool-registry/tool-registry',
  },
}

for (const [page, { capability, defaults, options }] of Object.entries(pages)) {
  suite(`site/reference/capabilities/${page}.md`, () => {
    const text = readFileSync(`site/reference/capabilities/${page}.md`, 'utf8')

    test('lists the hooks with their triggers and priorities', () => {
      const hooks = (capability.hooks ?? []).map(({ name, triggers, mode, priority }) => [
        name,
        triggers.join(', '),
        mode === 'transform' ? 'hook' : mode,
        String(priority),
      ])
      assert.deepEqual(rows(text, 'Hooks', 4), hooks)
    })

    test('lists the tools with their arguments', () => {
      const own = (capability.tools ?? []).filter(({ name }) => !external.test(name))
      const tools = own.map(({ name, inputSchema }) => [name, listArguments(inputSchema)])
      const written = rows(text, 'Tools', 2).filter(([name]) => !external.test(name!))
      assert.deepEqual(written, tools)
    })

    test('the comment of each option says the default of the code', () => {
      const source = readFileSync(`hookloop/src/capabilities/${options}.ts`, 'utf8')
      const wrong = Object.entries(defaults).filter(([name, value]) => {
        const [, comment] = new RegExp(`/\\*\\* ([^\n]*) \\*/\n {2}readonly ${name}\\??:`).exec(source) ?? []
        const [stated] = /\b(?:default|required)\b.*/is.exec(comment ?? '') ?? []
        return stated?.includes(asText(value)) !== true
      })
      assert.deepEqual(
        wrong.map(([name]) => name),
        [],
      )
    })
  })
}

/** A default as comments have it; of lists and objects, only that there is one. */
function asText(value: unknown): string {
  if (typeof value === 'number') return value.toLocaleString('en-US')
  return typeof value === 'string' || typeof value === 'boolean' ? String(value) : ''
}

/** The first cells of each row in the first table below a heading, without backticks. */
function rows(text: string, heading: string, cells: number): readonly (readonly string[])[] {
  const section = new RegExp(`^## ${heading}$([^]*?)(?=^## |$(?![^]))`, 'm').exec(text)?.[1] ?? ''
  const table = /(?:^\|.*\n?)+/m.exec(section)?.[0] ?? ''
  const lines = table.split('\n').filter((line) => line.startsWith('|'))
  return lines.slice(2).map((line) =>
    line
      .slice(1)
      .split(/(?<!\\)\|/)
      .slice(0, cells)
      .map((cell) => cell.replaceAll('`', '').trim()),
  )
}

function listArguments(schema: { readonly [key: string]: unknown }): string {
  const properties = Object.keys(schema['properties'] ?? {})
  const required = (schema['required'] ?? []) as readonly string[]
  return properties.map((name) => (required.includes(name) ? name : `${name}?`)).join(', ') || '—'
}
