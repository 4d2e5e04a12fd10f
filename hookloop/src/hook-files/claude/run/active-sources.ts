import { getActiveSkills } from '../../../capabilities/skills/skills.ts'
import { isJsonObject, type JsonObject } from '../../../state/json.ts'
import type { ToolCall, ToolExecution } from '../../../state/tool-call.ts'
import { BaseContext } from '../../../hooks/base-context.ts'
import type { HookSource } from '../load/handlers.ts'
import { SESSION_KEY, subagentOf } from '../events/common-payload.ts'

/** What is stored in the state for Claude Code hooks. */
export function storedIn({ state }: BaseContext): JsonObject {
  const stored = state.metadata[SESSION_KEY]
  return isJsonObject(stored) ? stored : {}
}

export function hasSession(ctx: BaseContext): boolean {
  return storedIn(ctx)['session'] !== undefined
}

export function skillsOf(ctx: BaseContext): readonly string[] {
  const { skills } = storedIn(ctx)
  return Array.isArray(skills) ? skills.filter((each) => typeof each === 'string') : []
}

/** Skills that have become active: loaded by the model, or called by the user as `/name`. */
export function loadedSkills(ctx: BaseContext): readonly string[] {
  const loaded = ctx.trigger === 'afterToolUse' ? loadedSkill(ctx) : undefined
  return [...getActiveSkills(ctx.state), ...(loaded === undefined ? [] : [loaded])]
}

function loadedSkill(ctx: BaseContext): string | undefined {
  const { toolCall, toolExecution } = BaseContext.draftOf(ctx).facts as {
    readonly toolCall: ToolCall
    readonly toolExecution: ToolExecution
  }
  const name = toolCall.args['skill_name'] ?? toolCall.args['skill']
  const isLoaded = (toolCall.name === 'load_skill' || toolCall.name === 'Skill') && toolExecution.status === 'ok'
  return isLoaded && typeof name === 'string' ? name : undefined
}

/** Hooks of a skill apply once it was loaded; hooks of an agent while it runs and when it ends. */
export function activeFor(ctx: BaseContext): (source: HookSource) => boolean {
  const skills = [...skillsOf(ctx), ...getActiveSkills(ctx.state)]
  const { subagent } = BaseContext.draftOf(ctx).facts as { readonly subagent?: { readonly name: string } }
  const agent = subagent?.name ?? subagentOf(ctx.state)
  return ({ kind, name }) => {
    if (kind === 'skill') return name !== undefined && skills.includes(name)
    return kind !== 'agent' || (name !== undefined && name === agent)
  }
}
