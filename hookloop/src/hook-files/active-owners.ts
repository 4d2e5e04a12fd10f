import { SUBAGENT_KEY, type AgentState } from '../core/state/agent-state.ts'
import { isJsonObject } from '../values/json.ts'
import { getActiveSkills } from '../capabilities/skills/skills.ts'
import { hook, type Hook } from '../core/hooks/hook.ts'
import type { Matchable, Matcher } from '../core/hooks/matchers.ts'

/** The metadata key for the skills that were active in a conversation. Their hooks apply until it ends. */
export const SKILLS_WITH_HOOKS_KEY = 'hookloop.skillsWithHooks'

/** Matches when hooks of a skill or an agent apply: once the skill was active, or while the agent runs and when it ends. */
export function ownerIsActive({ kind, name }: { readonly kind: string; readonly name?: string | undefined }): Matcher {
  if (kind === 'skill') return ({ state }) => name !== undefined && usedSkills(state).includes(name)
  if (kind !== 'agent') return () => true
  return (ctx) => {
    const { subagent } = ctx as Matchable & { readonly subagent?: { readonly name: string } }
    return name !== undefined && (subagent?.name ?? agentOf(ctx.state)) === name
  }
}

function agentOf({ metadata }: AgentState): string | undefined {
  const who = metadata[SUBAGENT_KEY]
  return isJsonObject(who) && typeof who['name'] === 'string' ? who['name'] : undefined
}

function storedSkills({ metadata }: AgentState): readonly string[] {
  const stored = metadata[SKILLS_WITH_HOOKS_KEY]
  return Array.isArray(stored) ? stored.filter((each) => typeof each === 'string') : []
}

function usedSkills(state: AgentState): readonly string[] {
  return [...new Set([...storedSkills(state), ...getActiveSkills(state)])]
}

/** A hook that stores in the conversation which of these skills were active. */
export function skillTracking(names: readonly string[], by: string): Hook {
  return hook(
    ['beforeExecution', 'afterStep'],
    (ctx) => {
      const stored = storedSkills(ctx.state)
      const fresh = usedSkills(ctx.state).filter((name) => names.includes(name) && !stored.includes(name))
      return fresh.length === 0
        ? ctx
        : ctx.withState((state) => state.withMetadata(SKILLS_WITH_HOOKS_KEY, [...stored, ...fresh]))
    },
    { name: `${by}.skills`, bookkeeping: true, priority: 50 },
  )
}
