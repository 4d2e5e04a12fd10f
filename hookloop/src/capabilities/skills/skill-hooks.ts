import { guard, hook, toNameTest, typedCommand, type Hook, type Message } from '../../plugin.ts'
import { activate, activeIn, forgetOld } from './active.ts'
import { allowsCall, describeAllowed } from './allowed-tools.ts'
import type { SkillsPolicy } from './options.ts'
import { renderSkill } from './render-skill.ts'
import type { Skill } from './skill.ts'
import type { Library, SkillTool } from './skill-tools.ts'

type Tools = { readonly load: SkillTool; readonly read: SkillTool }

export function skillHooks(library: Library, policy: SkillsPolicy, tools: Tools): readonly Hook[] {
  return [
    ...(policy.commands ? [commandHook(library, policy)] : []),
    hook('beforeExecution', (ctx) => ctx.withState(forgetOld), {
      name: 'skills.forget',
      bookkeeping: true,
      priority: 100,
    }),
    activateHook(library, tools.load),
    toolsGuard(policy, tools),
    modelHook(policy),
  ]
}

/** The user invokes a skill by its name: its text replaces the input, and it is active for this execution. */
function commandHook(library: Library, policy: SkillsPolicy): Hook {
  return hook(
    'onUserInput',
    async (ctx) => {
      const { skill, given } = commandIn(ctx.input, library) ?? {}
      if (skill === undefined || given === undefined) return ctx
      const text = await renderSkill(skill, given.slice(0, policy.maxArgumentChars), { ...policy, signal: ctx.signal })
      // The execution has not started yet: it will be the next one.
      return ctx.withInput(text).withState((state) => activate(state, skill, state.executionCount + 1))
    },
    {
      name: 'skills.command',
      bookkeeping: true,
      priority: 100,
      effect: true,
      onFailure: 'block', // the literal input is not what the user meant
      when: ({ input }) => commandIn(input, library) !== undefined, // so that other inputs are not recorded as effects
    },
  )
}

function commandIn(input: Message, library: Library): { readonly skill: Skill; readonly given: string } | undefined {
  const { name = '', given = '' } = typedCommand(input) ?? {}
  const skill = library.get(name)
  return skill?.userInvocable === true ? { skill, given } : undefined
}

function activateHook(library: Library, load: SkillTool): Hook {
  return hook(
    'afterToolUse',
    (ctx) => {
      const skill = library.get(ctx.toolCall.args['skill_name'] as string)
      if (skill === undefined || ctx.toolExecution.status !== 'ok') return ctx
      return ctx.withState((state) => activate(state, skill))
    },
    { name: 'skills.activate', bookkeeping: true, priority: 100, tool: load },
  )
}

/** A skill can only restrict tools: with several active, each that lists tools must allow a call. */
function toolsGuard({ always }: SkillsPolicy, { load, read }: Tools): Hook {
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
function modelHook({ models }: SkillsPolicy): Hook {
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
