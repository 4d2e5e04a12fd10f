export { subagents, type SubagentDefinition, type SubagentsOptions } from './subagents.ts'
export { defineAgent, type AgentDefinition } from './agent-definition.ts'
export {
  fromAgentMarkdown,
  readAgents,
  toAgentMarkdown,
  type AgentFileProblem,
  type AgentFiles,
} from './agent-files.ts'
export { agentDefinitions, type AgentDefinitionsOptions } from './agent-definitions.ts'
