import { SUBAGENT_KEY } from '../../agent/subagents/child-run.ts'
import type { AgentState } from '../../state/agent-state.ts'
import { isJsonObject, type Json } from '../../state/json.ts'
import type { AllowedTool } from './allowed-tools.ts'

/** Where the skills that are active live in the state's metadata. */
export const SKILLS_KEY = 'hookloop.skills'

/** A skill in force: all that hooks need to know of it, so that no file is looked at again. */
export type ActiveSkill = {
  readonly name: string
  readonly allowedTools?: readonly AllowedTool[]
  readonly model?: string
}

type Kept = { readonly depth: number; readonly execution: number; readonly active: readonly ActiveSkill[] }

/**
 * The skills in force, in order of loading: those that were loaded in this execution, and in a subagent those of whoever it
 * works for. Throws if what is kept cannot be read, so that a guard says no.
 */
export function activeIn(state: AgentState, execution = state.executionCount): readonly ActiveSkill[] {
  const kept = keptIn(state)
  return kept === undefined || isOver(kept, state, execution) ? [] : kept.active
}

/** A state without the skills of an earlier execution, so that no subagent takes them for those of its parent. */
export function forgetOld(state: AgentState): AgentState {
  const kept = keptIn(state)
  return kept === undefined || !isOver(kept, state, state.executionCount) ? state : state.withoutMetadata(SKILLS_KEY)
}

function isOver({ depth, execution }: Kept, state: AgentState, now: number): boolean {
  return depth >= depthOf(state) && execution !== now
}

/** How many agents this one is inside of. A subagent begins with the metadata of its parent. */
function depthOf({ metadata }: AgentState): number {
  const who = metadata[SUBAGENT_KEY]
  const depth = isJsonObject(who) ? who['depth'] : 0
  return typeof depth === 'number' ? depth : 0
}

function keptIn(state: AgentState): Kept | undefined {
  const kept = state.metadata[SKILLS_KEY]
  if (kept === undefined) return undefined
  if (isKept(kept)) return kept
  throw new Error(`What is kept under "${SKILLS_KEY}" is not what this capability writes there.`)
}

/** A state in which a skill is active, now or in the execution that is about to begin. */
export function activate(state: AgentState, skill: ActiveSkill, execution = state.executionCount): AgentState {
  const { name, allowedTools, model } = skill
  const others = activeIn(state, execution).filter((active) => active.name !== name)
  const active = { name, ...(allowedTools && { allowedTools }), ...(model !== undefined && { model }) }
  return state.withMetadata(SKILLS_KEY, { depth: depthOf(state), execution, active: [...others, active] })
}

function isKept(value: Json): value is Kept {
  if (!isJsonObject(value) || typeof value['depth'] !== 'number' || typeof value['execution'] !== 'number') return false
  return Array.isArray(value['active']) && value['active'].every(isActive)
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
