import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, suite, test } from 'node:test'
import { tool, type Capability } from 'hookloop'
import { agentDefinitions, agentDefinitionsPolicy } from '../hookloop/src/capabilities/subagents/agent-definitions.ts'
import { bash, bashPolicy } from '../hookloop/src/capabilities/bash/bash.ts'
import { cancellation, cancellationPolicy } from '../hookloop/src/capabilities/cancellation.ts'
import { executionHistory, executionHistoryPolicy } from '../hookloop/src/sessions/history/execution-history.ts'
import { files } from '../hookloop/src/capabilities/files/files.ts'
import { filesDefaults } from '../hookloop/src/capabilities/files/options.ts'
import { mcp } from '../hookloop/src/capabilities/mcp/mcp.ts'
import { mcpDefaults } from '../hookloop/src/capabilities/mcp/settings.ts'
import { metadata, metadataPolicy } from '../hookloop/src/capabilities/metadata.ts'
import { planning, planningPolicy } from '../hookloop/src/capabilities/subagents/planning.ts'
import { retrospective, retrospectivePolicy } from '../hookloop/src/sessions/history/retrospective.ts'
import { selfCritique, selfCritiquePolicy } from '../hookloop/src/capabilities/self-critique/self-critique.ts'
import {
  selfDescription,
  selfDescriptionPolicy,
} from '../hookloop/src/capabilities/self-description/self-description.ts'
import { skills, skillsPolicy } from '../hookloop/src/capabilities/skills/skills.ts'
import {
  structuredOutput,
  structuredOutputPolicy,
} from '../hookloop/src/capabilities/structured-output/structured-output.ts'
import { subagents, subagentsPolicy } from '../hookloop/src/capabilities/subagents/subagents.ts'
import { summarization, summarizationPolicy } from '../hookloop/src/capabilities/summarization/summarization.ts'
import { tasks, tasksPolicy } from '../hookloop/src/capabilities/tasks/tasks.ts'
import { toolRegistry, toolRegistryPolicy } from '../hookloop/src/capabilities/tool-registry/tool-registry.ts'

// The pages of capabilities have three tables, which must match the code: hooks, tools and options.

const invoice = { type: 'object', properties: { total: { type: 'number' } } } as const

const spare = tool({ name: 'spare', description: 'One of hundreds.', input: { type: 'object' }, execute: () => 'done' })

const reader = { description: 'Reads.', instructions: 'Read.' }

const server = 'hookloop/src/capabilities/mcp/real-server.fixture.ts'
const connected = await mcp({ servers: { real: { command: process.execPath, args: [server] } } })
after(() => connected.close())

/** Tools that are the application's or a server's own. */
const brought = /^(?:spare|mcp__.*)$/

const pages: { readonly [page: string]: { readonly made: Capability; readonly policy: object } } = {
  'agent-definitions': { made: agentDefinitions(), policy: agentDefinitionsPolicy },
  bash: { made: bash({ sandbox: 'off' }), policy: bashPolicy },
  cancellation: { made: cancellation(() => false), policy: cancellationPolicy },
  'execution-history': { made: executionHistory(), policy: executionHistoryPolicy },
  files: { made: files({ root: '.' }), policy: filesDefaults },
  mcp: { made: connected, policy: mcpDefaults },
  metadata: { made: metadata(), policy: metadataPolicy },
  planning: { made: planning(), policy: planningPolicy },
  retrospective: { made: retrospective(), policy: retrospectivePolicy },
  'self-critique': { made: selfCritique(), policy: selfCritiquePolicy },
  'self-description': { made: selfDescription(), policy: selfDescriptionPolicy },
  skills: { made: skills({ dirs: [] }), policy: skillsPolicy },
  subagents: { made: subagents({ agents: { reader } }), policy: subagentsPolicy },
  'structured-output': { made: structuredOutput({ schemas: { invoice } }), policy: structuredOutputPolicy },
  summarization: { made: summarization(), policy: summarizationPolicy },
  tasks: { made: tasks(), policy: tasksPolicy },
  'tool-registry': { made: toolRegistry({ tools: [spare] }), policy: toolRegistryPolicy },
}

for (const [page, { made, policy }] of Object.entries(pages)) {
  suite(`site/reference/capabilities/${page}.md`, () => {
    const text = readFileSync(`site/reference/capabilities/${page}.md`, 'utf8')

    test('lists the hooks with their triggers and priorities', () => {
      const hooks = (made.hooks ?? []).map(({ name, triggers, mode, priority }) => [
        name,
        triggers.join(', '),
        mode === 'transform' ? 'hook' : mode,
        String(priority),
      ])
      assert.deepEqual(rows(text, 'Hooks', 4), hooks)
    })

    test('lists the tools with their arguments', () => {
      const own = (made.tools ?? []).filter(({ name }) => !brought.test(name))
      const tools = own.map(({ name, inputSchema }) => [name, argumentWords(inputSchema)])
      const written = rows(text, 'Tools', 2).filter(([name]) => !brought.test(name!))
      assert.deepEqual(written, tools)
    })

    test('lists the options with their defaults', () => {
      const options = Object.entries(policy).map(([name, value]) => [
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

function argumentWords(schema: { readonly [key: string]: unknown }): string {
  const properties = Object.keys(schema['properties'] ?? {})
  const required = (schema['required'] ?? []) as readonly string[]
  return properties.map((name) => (required.includes(name) ? name : `${name}?`)).join(', ') || '—'
}
