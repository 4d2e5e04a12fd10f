import { link, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { tool, type Capability, type Tool } from '../../plugin.ts'
import { invalidOption, readOptions } from '../../values/check-options.ts'
import { optionTypes } from '../../values/option-types.ts'
import { defineAgent, definitionLimits, type AgentDefinition } from './agent-definition.ts'
import { messageOf } from '../../errors.ts'
import { fromAgentMarkdown, readAgents, toAgentMarkdown, type AgentFiles } from './agent-files.ts'
import { objectSchema } from '../../values/schema.ts'

/** Options of `agentDefinitions`. */
export type AgentDefinitionsOptions = {
  /** Definitions in code. Default none. */
  readonly agents?: { readonly [name: string]: AgentDefinition }
  /** Folders of Markdown files, read at each call. Default none. */
  readonly folders?: readonly string[]
  /** The folder that definitions are written to; `null` if the model may not write any. Default null. */
  readonly writeTo?: string | null
  /** Whether writing needs approval. Default true. */
  readonly ask?: boolean
  /** The length of the instructions that the model writes. Default 32,768. */
  readonly maxInstructionChars?: number
}

export const agentDefinitionsDefaults = Object.freeze({
  agents: Object.freeze({}) as { readonly [name: string]: AgentDefinition },
  folders: Object.freeze([]),
  writeTo: null as string | null,
  ask: true,
  maxInstructionChars: 32_768,
})

type Policy = Required<AgentDefinitionsOptions>

/**
 * Gives the model tools to list and read agent definitions and, with `writeTo`, to write new ones as Markdown files.
 *
 * @example
 * createAgent({ model, use: [agentDefinitions({ folders: ['.claude/agents'], writeTo: '.hookloop/agents' })] })
 */
export function agentDefinitions(options: AgentDefinitionsOptions = {}): Capability {
  const policy: Policy = readOptions('agentDefinitions', options, agentDefinitionsDefaults, {
    agents: optionTypes.any,
  })
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
        ? 'The model can read agent definitions, not write them.'
        : `The model can write agent definitions to ${policy.writeTo}. They take effect when an agent is created from them.`,
    ],
  }
}

const nothing = objectSchema({})

function listTool(policy: Policy): Tool {
  return tool({
    name: 'list_agents',
    description: 'Lists the defined agents with their names and descriptions.',
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
    description: 'Returns the definition of an agent: its instructions, tools, model and limits.',
    input: objectSchema({ name: { type: 'string' } }, ['name']),
    concurrent: true,
    idempotent: true,
    execute: (args) => {
      const { name } = args as { name: string }
      const { agents } = known(policy)
      if (Object.hasOwn(agents, name)) return agents[name]
      throw new Error(`There is no agent "${name}". Available: ${Object.keys(agents).join(', ') || 'none'}.`)
    },
  })
}

function writeTool(policy: Policy, folder: string): Tool {
  const amount = { type: 'number', minimum: 0 }
  const names = { type: 'array', items: { type: 'string' }, maxItems: 200 }
  return tool({
    name: 'write_agent',
    description:
      'Writes the definition of an agent. Omit "tools" to give it every tool of its caller; an empty list gives it none.',
    input: objectSchema(
      {
        name: { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$' },
        description: { type: 'string', minLength: 1, maxLength: 1024, description: 'When to use it.' },
        instructions: { type: 'string', maxLength: policy.maxInstructionChars, description: 'Its system prompt.' },
        tools: names,
        disallowedTools: names,
        model: { type: 'string', minLength: 1 },
        ...Object.fromEntries(definitionLimits.map((limit) => [limit, amount])),
        overwrite: { type: 'boolean', description: 'Whether to replace an existing definition.' },
      },
      ['name', 'description', 'instructions'],
    ),
    ask: policy.ask,
    execute: async (args) => {
      const { overwrite = false, ...definition } = args as AgentDefinition & { overwrite?: boolean }
      await write(folder, defineAgent(definition), overwrite)
      return `The definition of the agent "${definition.name}" is written.`
    },
  })
}

/** All definitions: from code, from the folders, and written by the model. */
function known({ agents, folders, writeTo }: Policy): AgentFiles {
  const read = readAgents(...folders, ...(writeTo === null ? [] : [writeTo]))
  const own = Object.fromEntries(Object.entries(agents).map(([name, each]) => [name, { ...each, name }]))
  return { agents: { ...read.agents, ...own }, problems: read.problems }
}

let written = 0

/** Writes atomically and replaces nothing by accident. What is read back must equal what was written. */
async function write(folder: string, definition: AgentDefinition, overwrite: boolean): Promise<void> {
  const text = toAgentMarkdown(definition)
  const { definition: back } = fromAgentMarkdown(text)
  if (
    JSON.stringify(toSorted(back)) !==
    JSON.stringify(toSorted({ ...definition, instructions: definition.instructions.trim() }))
  ) {
    throw new Error('The definition cannot be written as Markdown without loss.')
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
      throw new Error(`The file cannot be written: ${messageOf(thrown)}`, { cause: thrown })
    throw new Error(
      `The agent "${definition.name}" exists already. Set "overwrite" to replace it, or choose another name.`,
      { cause: thrown },
    )
  } finally {
    await rm(draft, { force: true })
  }
}

function toSorted(definition: AgentDefinition): object {
  return Object.fromEntries(Object.entries(definition).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
