import { metadataKeys, type AgentState } from '../../plugin.ts'
import { isJsonObject, type Json } from '../../values/json.ts'
import type { AllowedTool } from './allowed-tools.ts'

/** The metadata key of the active skills. */
const SKILLS_KEY = 'hookloop.skills'

/** An active skill with everything that hooks need, so that no file is read again. */
type ActiveSkill = {
  readonly name: string
  readonly allowedTools?: readonly AllowedTool[]
  readonly model?: string
}

type Stored = { readonly depth: number; readonly execution: number; readonly active: readonly ActiveSkill[] }

/**
 * The active skills in the order in which they were loaded: those of this execution and, in a subagent, those of its parent.
 * Throws if the stored value is invalid, so that a guard blocks.
 */
export function activeIn(state: AgentState, execution = state.executionCount): readonly ActiveSkill[] {
  const stored = storedIn(state)
  return stored === undefined || isExpired(stored, state, execution) ? [] : stored.active
}

/** Removes the skills of an earlier execution, so that a subagent does not take them for those of its parent. */
export function forgetOld(state: AgentState): AgentState {
  const stored = storedIn(state)
  const isCurrent = stored === undefined || !isExpired(stored, state, state.executionCount)
  return isCurrent ? state : state.withoutMetadata(SKILLS_KEY)
}

function isExpired({ depth, execution }: Stored, state: AgentState, now: number): boolean {
  return depth >= depthOf(state) && execution !== now
}

/** The nesting depth of this agent. A subagent starts with the metadata of its parent. */
function depthOf({ metadata }: AgentState): number {
  const who = metadata[metadataKeys.subagent]
  const depth = isJsonObject(who) ? who['depth'] : 0
  return typeof depth === 'number' ? depth : 0
}

function storedIn(state: AgentState): Stored | undefined {
  const stored = state.metadata[SKILLS_KEY]
  if (stored === undefined) return undefined
  if (isStored(stored)) return stored
  throw new Error(`The metadata "${SKILLS_KEY}" is invalid: it was not written by the capability skills.`)
}

/** Activates a skill, in the current execution or in the one that is about to start. */
export function activate(state: AgentState, skill: ActiveSkill, execution = state.executionCount): AgentState {
  const { name, allowedTools, model } = skill
  const others = activeIn(state, execution).filter((active) => active.name !== name)
  const active = { name, ...(allowedTools && { allowedTools }), ...(model !== undefined && { model }) }
  return state.withMetadata(SKILLS_KEY, { depth: depthOf(state), execution, active: [...others, active] })
}

function isStored(value: Json): value is Stored {
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
