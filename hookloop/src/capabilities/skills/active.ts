import type { AgentState } from '../../data/agent-state.ts'
import { isJsonObject, type Json } from '../../data/json.ts'
import type { AllowedTool } from './allowed-tools.ts'
import type { Skill } from './skill.ts'

/** Where the skills that are active live in the state's metadata. */
export const SKILLS_KEY = 'hookloop.skills'

/** A skill in force: all that hooks need to know of it, so that no file is looked at again. */
export type ActiveSkill = {
  readonly name: string
  readonly allowedTools?: readonly AllowedTool[]
  readonly model?: string
}

/**
 * The skills that were loaded in an execution, in order of loading. They are in force until it ends: whatever belongs to
 * another execution is over. Throws if what is kept cannot be read, so that a guard says no.
 */
export function activeIn(state: AgentState, execution = state.executionCount): readonly ActiveSkill[] {
  const kept = state.metadata[SKILLS_KEY]
  if (kept === undefined) return []
  if (!isJsonObject(kept) || !Array.isArray(kept['active']) || !kept['active'].every(isActive)) {
    throw new Error(`What is kept under "${SKILLS_KEY}" is not what this capability writes there.`)
  }
  return kept['execution'] === execution ? kept['active'] : []
}

/** A state in which a skill is active, now or in the execution that is about to begin. */
export function activate(state: AgentState, skill: Skill, execution = state.executionCount): AgentState {
  const { name, allowedTools, model } = skill
  const others = activeIn(state, execution).filter((active) => active.name !== name)
  const active = { name, ...(allowedTools && { allowedTools }), ...(model !== undefined && { model }) }
  return state.withMetadata(SKILLS_KEY, { execution, active: [...others, active] })
}

function isActive(value: Json): boolean {
  if (!isJsonObject(value) || typeof value['name'] !== 'string') return false
  const { allowedTools, model } = value as { readonly [name: string]: Json | undefined }
  const isList = allowedTools === undefined || (Array.isArray(allowedTools) && allowedTools.every(isAllowed))
  return isList && (model === undefined || typeof model === 'string')
}

function isAllowed(value: Json): boolean {
  if (!isJsonObject(value) || typeof value['tool'] !== 'string') return false
  return value['command'] === undefined || typeof value['command'] === 'string'
}
