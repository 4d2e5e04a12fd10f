import { resolve } from 'node:path'
import type { Capability } from '../../agent/capability.ts'
import { TrustStore } from '../trust/trust-store.ts'
import { combineGroups, type ClaudeHooksOptions } from './claude-hooks.ts'
import { eventSpec } from './events/claude-events.ts'
import type { Handler, HookGroup } from './load/handlers.ts'
import { toMatcher } from './events/matcher.ts'
import { readSettings } from './load/read-settings.ts'
import { namesOf } from './events/tool-names.ts'
import { trustedGroups } from './load/trusted-groups.ts'

/** One handler of the settings of a project, for checks of single handlers. */
export type SingleHandler = {
  readonly group: HookGroup
  readonly handler: Handler
  /** Whether its matcher matches a tool of the agent. */
  readonly fits: (tool: string) => boolean
  /** Creates a capability with only this handler, as if its skill or agent were active. `ran` counts its runs. */
  readonly make: () => { readonly capability: Capability; readonly ran: () => number }
}

/** The trusted handlers whose events fire by themselves. */
export function singleHandlers(options: ClaudeHooksOptions): readonly SingleHandler[] {
  const dir = resolve(options.dir)
  const { trust = new TrustStore() } = options
  const settings = readSettings({ ...options, dir })
  const { groups } = trustedGroups(settings, { dir, trust })
  return groups
    .filter(({ event }) => {
      const { trigger, isOnDemand } = eventSpec(event)
      return trigger !== undefined && isOnDemand !== true
    })
    .flatMap((group) =>
      group.handlers.map((handler): SingleHandler => {
        const matcher = toMatcher(group.matcher, group.event)
        return {
          group,
          handler,
          fits: (tool) => eventSpec(group.event).matches !== 'tool_name' || namesOf(tool).some(matcher.matches),
          make: () => alone({ ...group, handlers: [handler] }, { options, dir, settings }),
        }
      }),
    )
}

function alone(
  group: HookGroup,
  options: Parameters<typeof combineGroups>[1],
): { readonly capability: Capability; readonly ran: () => number } {
  let count = 0
  const { source } = group
  const isAlways = source.kind !== 'skill' && source.kind !== 'agent'
  const always: HookGroup = isAlways ? group : { ...group, source: { ...source, kind: 'project' } }
  const capability = combineGroups([always], { ...options, onRun: () => void count++ })
  return { capability, ran: () => count }
}
