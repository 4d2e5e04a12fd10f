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

// The pages of capabilities have three tables, which must match the code: hooks, tools and options.

const invoice = { type: 'object', properties: { total: { type: 'number' } } } as const

const spare = tool({ name: 'spare', description: 'One of hundreds.', input: { type: 'object' }, execute: () => 'done' })

const reader = { description: 'Reads.', instructions: 'Read.' }

const server = 'hookloop/src/capabilities/mcp/real-server.fixture.ts'
const connected = await mcp({ servers: { real: { command: process.execPath, args: [server] } } })
after(() => connected.close())

/** Tools of the application or of a server. */
const external = /^(?:spare|mcp__.*)$/

const pages: { readonly [page: string]: { readonly capability: Capability; readonly defaults: object } } = {
  'agent-definitions': { capability: agentDefinitions(), defaults: agentDefinitionsDefaults },
  bash: { capability: bash({ sandbox: 'off' }), defaults: bashDefaults },
  files: { capability: files({ root: '.' }), defaults: filesDefaults },
  mcp: { capability: connected, defaults: mcpDefaults },
  metadata: { capability: metadata(), defaults: metadataDefaults },
  'self-critique': { capability: selfCritique(), defaults: selfCritiqueDefaults },
  skills: { capability: skills({ dirs: [] }), defaults: skillsDefaults },
  subagents: { capability: subagents({ agents: { reader } }), defaults: subagentsDefaults },
  'structured-output': { capability: structuredOutput({ schemas: { invoice } }), defaults: structuredOutputDefaults },
  summarization: { capability: summarization(), defaults: summarizationDefaults },
  tasks: { capability: tasks(), defaults: tasksDefaults },
  'tool-registry': { capability: toolRegistry({ tools: [spare] }), defaults: toolRegistryDefaults },
}

for (const [page, { capability, defaults }] of Object.entries(pages)) {
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

    test('lists the options with their defaults', () => {
      const options = Object.entries(defaults).map(([name, value]) => [
        name,
        value === undefined ? '—' : JSON.stringify(value),
      ])
      const written = rows(text, 'Options', 3).map(([option, , byDefault]) => [option, byDefault])
      assert.deepEqual(written, options)
    })
  })
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
