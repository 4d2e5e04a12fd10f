import { link, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Capability } from '../../agent/capability.ts'
import { checkOptions, definedOptions, invalidOption } from '../../agent/check-options.ts'
import { tool, type Tool } from '../../agent/tool.ts'
import { defineAgent, definitionLimits, type AgentDefinition } from '../../state/agent-definition.ts'
import { messageOf } from '../../errors.ts'
import { fromAgentMarkdown, readAgents, toAgentMarkdown, type AgentFiles } from './agent-files.ts'

export type AgentDefinitionsOptions = {
  /** Definitions that are known already. */
  readonly agents?: { readonly [name: string]: AgentDefinition }
  /** Folders of Markdown files, read anew each time. */
  readonly folders?: readonly string[]
  /** Where definitions are written to. Without it, the model cannot write any. */
  readonly writeTo?: string | null
  /** Whether a person is asked before one is written. Default true. */
  readonly ask?: boolean
  /** How long the instructions may be that the model writes. */
  readonly maxInstructionChars?: number
}

/** What applies unless it is told otherwise. */
export const agentDefinitionsPolicy = Object.freeze({
  agents: Object.freeze({}) as { readonly [name: string]: AgentDefinition },
  folders: Object.freeze([]),
  writeTo: null as string | null,
  ask: true,
  maxInstructionChars: 32_768,
})

type Policy = Required<AgentDefinitionsOptions>

/** Lets the model see which agents are defined and how, and write down new ones where there is a folder for them. */
export function agentDefinitions(options: AgentDefinitionsOptions = {}): Capability {
  checkOptions('agentDefinitions', options, Object.keys(agentDefinitionsPolicy))
  const policy: Policy = { ...agentDefinitionsPolicy, ...definedOptions(options) }
  for (const [name, each] of Object.entries(policy.agents)) defineAgent({ ...each, name })
  if (policy.writeTo !== null && (typeof policy.writeTo !== 'string' || policy.writeTo === '')) {
    throw invalidOption('agentDefinitions', '"writeTo" must be the path of a folder', policy.writeTo)
  }
  return {
    name: 'agentDefinitions',
    tools: [
      listTool(policy),
      readTool(policy),
      ...(policy.writeTo === null ? [] : [writeTool(policy, policy.writeTo)]),
    ],
    notes: [
      policy.writeTo === null
        ? 'Agent definitions can be read by the model, not written.'
        : `The model can write agent definitions to ${policy.writeTo}. They are used when an agent is made of them.`,
    ],
  }
}

const nothing = { type: 'object', properties: {}, additionalProperties: false }

function listTool(policy: Policy): Tool {
  return tool({
    name: 'list_agents',
    description: 'Lists the agents that are defined: their names and what they are for.',
    input: nothing,
    concurrent: true,
    idempotent: true,
    execute: () => {
      const { agents, problems } = known(policy)
      const list = Object.values(agents).map(({ name, description }) => ({ name, description }))
      return problems.length === 0 ? { agents: list } : { agents: list, problems }
    },
  })
}

function readTool(policy: Policy): Tool {
  return tool({
    name: 'read_agent',
    description: 'Shows the definition of an agent: its instructions, its tools, its model and its limits.',
    input: {
      type: 'object',
      properties: { name: { type: 'string' } },
      required: ['name'],
      additionalProperties: false,
    },
    concurrent: true,
    idempotent: true,
    execute: (args) => {
      const { name } = args as { name: string }
      const { agents } = known(policy)
      if (Object.hasOwn(agents, name)) return agents[name]
      throw new Error(`There is no agent "${name}". There are: ${Object.keys(agents).join(', ') || 'none'}.`)
    },
  })
}

function writeTool(policy: Policy, folder: string): Tool {
  const amount = { type: 'number', minimum: 0 }
  const names = { type: 'array', items: { type: 'string' }, maxItems: 200 }
  return tool({
    name: 'write_agent',
    description:
      'Writes down the definition of an agent. Leave "tools" out to let it have every tool of whoever calls it; an empty list is none.',
    input: {
      type: 'object',
      properties: {
        name: { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$' },
        description: { type: 'string', minLength: 1, maxLength: 1024, description: 'When to use it.' },
        instructions: { type: 'string', maxLength: policy.maxInstructionChars, description: 'Its system prompt.' },
        tools: names,
        disallowedTools: names,
        model: { type: 'string', minLength: 1 },
        ...Object.fromEntries(definitionLimits.map((limit) => [limit, amount])),
        overwrite: { type: 'boolean', description: 'Whether to replace a definition of that name.' },
      },
      required: ['name', 'description', 'instructions'],
      additionalProperties: false,
    },
    ask: policy.ask,
    execute: async (args) => {
      const { overwrite = false, ...definition } = args as AgentDefinition & { overwrite?: boolean }
      await write(folder, defineAgent(definition), overwrite)
      return `The agent "${definition.name}" is written down.`
    },
  })
}

/** The definitions at hand: those of the code, those of the folders, and those the model has written. */
function known({ agents, folders, writeTo }: Policy): AgentFiles {
  const read = readAgents(...folders, ...(writeTo === null ? [] : [writeTo]))
  const own = Object.fromEntries(Object.entries(agents).map(([name, each]) => [name, { ...each, name }]))
  return { agents: { ...read.agents, ...own }, problems: read.problems }
}

let written = 0

/** Whole or not at all, and never by accident over another. What is read back must be what was written. */
async function write(folder: string, definition: AgentDefinition, overwrite: boolean): Promise<void> {
  const text = toAgentMarkdown(definition)
  const { definition: back } = fromAgentMarkdown(text)
  if (
    JSON.stringify(toSorted(back)) !==
    JSON.stringify(toSorted({ ...definition, instructions: definition.instructions.trim() }))
  ) {
    throw new Error('The definition cannot be written so that it is read back the same.')
  }
  await mkdir(folder, { recursive: true })
  const path = join(folder, `${definition.name}.md`)
  const draft = join(folder, `.${definition.name}.${process.pid}.${++written}.draft`)
  await writeFile(draft, text, { flag: 'wx', mode: 0o600 })
  try {
    if (overwrite) return await rename(draft, path)
    await link(draft, path)
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST')
      throw new Error(`It cannot be written: ${messageOf(thrown)}`, { cause: thrown })
    throw new Error(
      `There is an agent "${definition.name}" already. Set "overwrite" to replace it, or choose another name.`,
      { cause: thrown },
    )
  } finally {
    await rm(draft, { force: true })
  }
}

function toSorted(definition: AgentDefinition): object {
  return Object.fromEntries(Object.entries(definition).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
