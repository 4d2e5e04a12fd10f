import { typedCommand } from '../../agent/slash-commands.ts'
import type { Tool } from '../../agent/tool.ts'
import type { ModelSource } from '../../state/inference.ts'
import type { JsonObject } from '../../state/json.ts'
import type { Message } from '../../state/message.ts'
import { guard, hook, type Hook } from '../../hooks/hook.ts'
import { toNameTest } from '../../hooks/patterns.ts'
import { activate, activeIn, forgetOld } from './active.ts'
import { allowsCall, describeAllowed } from './allowed-tools.ts'
import { renderSkill, type Rendering } from './render-skill.ts'
import type { Skill } from './skill.ts'

type SkillTool = Tool<JsonObject, JsonObject>

type Parts = {
  readonly commands: boolean
  readonly always: readonly string[]
  readonly models: { readonly [name: string]: ModelSource }
  readonly maxArgumentChars: number
  readonly rendering: Rendering
  readonly load: SkillTool
  readonly read: SkillTool
}

export function skillHooks(library: ReadonlyMap<string, Skill>, parts: Parts): readonly Hook[] {
  return [
    ...(parts.commands ? [commandHook(library, parts)] : []),
    forgetHook(),
    activateHook(library, parts.load),
    toolsGuard(parts),
    modelHook(parts.models),
  ]
}

/** The user invokes a skill by its name: its text replaces the input, and it is active for this execution. */
function commandHook(library: ReadonlyMap<string, Skill>, { maxArgumentChars, rendering }: Parts): Hook {
  return hook(
    'onUserInput',
    async (ctx) => {
      const { skill, given } = commandIn(ctx.input, library) ?? {}
      if (skill === undefined || given === undefined) return ctx
      const text = await renderSkill(skill, given.slice(0, maxArgumentChars), { ...rendering, signal: ctx.signal })
      // The execution has not started yet: it will be the next one.
      return ctx.withInput(text).withState((state) => activate(state, skill, state.executionCount + 1))
    },
    {
      name: 'skills.command',
      priority: 100,
      effect: true,
      onFailure: 'block', // the literal input is not what the user meant
      when: ({ input }) => commandIn(input, library) !== undefined, // so that other inputs are not recorded as effects
    },
  )
}

function commandIn(
  input: Message,
  library: ReadonlyMap<string, Skill>,
): { readonly skill: Skill; readonly given: string } | undefined {
  const { name = '', given = '' } = typedCommand(input) ?? {}
  const skill = library.get(name)
  return skill?.userInvocable === true ? { skill, given } : undefined
}

function forgetHook(): Hook {
  return hook('beforeExecution', (ctx) => ctx.withState(forgetOld), { name: 'skills.forget', priority: 100 })
}

function activateHook(library: ReadonlyMap<string, Skill>, load: SkillTool): Hook {
  return hook(
    'afterToolUse',
    (ctx) => {
      const skill = library.get(ctx.toolCall.args['skill_name'] as string)
      if (skill === undefined || ctx.toolExecution.status !== 'ok') return ctx
      return ctx.withState((state) => activate(state, skill))
    },
    { name: 'skills.activate', priority: 100, tool: load },
  )
}

/** A skill can only restrict tools: with several active, each that lists tools must allow a call. */
function toolsGuard({ always, load, read }: Parts): Hook {
  const free = [load.name, read.name, ...always].map(toNameTest)
  return guard(
    'beforeToolUse',
    (ctx) => {
      const { name, args } = ctx.toolCall
      if (free.some((test) => test(name))) return ctx
      for (const { name: skill, allowedTools } of activeIn(ctx.state)) {
        if (allowedTools !== undefined && !allowsCall(allowedTools, { name, args })) {
          return ctx.block(`The skill "${skill}" allows only ${describeAllowed(allowedTools)} until this task is done.`)
        }
      }
      return ctx
    },
    { name: 'skills.allowedTools', priority: 150 },
  )
}

/** Uses the model that the latest skill requests, if it is one of the option `models`. */
function modelHook(models: Parts['models']): Hook {
  return hook(
    'beforeInference',
    (ctx) => {
      const requesting = activeIn(ctx.state).findLast(
        ({ model }) => model !== undefined && Object.hasOwn(models, model),
      )
      return requesting === undefined ? ctx : ctx.withRequest({ model: models[requesting.model!]! })
    },
    { name: 'skills.model', priority: 100 },
  )
}
