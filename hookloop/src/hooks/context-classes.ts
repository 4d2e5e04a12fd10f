import { abilities } from './abilities.ts'
import { Context, type Mode } from './draft.ts'
import { specOf, triggerNames, type Ability, type HookTrigger } from './triggers.ts'

/** One class for each trigger and mode, with the methods of its abilities and no others. */
const classes = new Map<string, typeof Context>()
for (const trigger of triggerNames) {
  const spec = specOf(trigger)
  classes.set(`${trigger}:transform`, contextClass(trigger, spec.hook === 'around' ? [] : spec.hook))
  classes.set(`${trigger}:guard`, contextClass(trigger, spec.guard))
  classes.set(`${trigger}:observe`, contextClass(trigger, []))
}

export function contextClassOf(trigger: HookTrigger, mode: Mode): typeof Context {
  return classes.get(`${trigger}:${mode}`)!
}

function contextClass(trigger: HookTrigger, can: readonly Ability[]): typeof Context {
  class TriggerContext extends Context {}
  for (const fact of specOf(trigger).carries) {
    Object.defineProperty(TriggerContext.prototype, fact, {
      enumerable: true,
      get(this: Context): unknown {
        return Context.draftOf(this).facts[fact]
      },
    })
  }
  for (const ability of can) {
    for (const [name, method] of Object.entries(abilities[ability])) {
      Object.defineProperty(TriggerContext.prototype, name, { value: method })
    }
  }
  return TriggerContext
}
