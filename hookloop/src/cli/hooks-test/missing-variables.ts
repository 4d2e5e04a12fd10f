import { readFileSync } from 'node:fs'
import { environmentFor, type EnvironmentRules } from '../../hook-files/claude/run/hook-environment.ts'
import type { HookGroup } from '../../hook-files/claude/load/handlers.ts'
import { commandLineOf, scriptsOf } from '../../hook-files/claude/load/trusted-groups.ts'

/** Variables that many published hooks read and nobody has ever set: what they are about is in the event. */
const neverSet = /\bCLAUDE_(?:TOOL_\w+|FILE_PATHS?|SESSION_ID|HOOK_EVENT\w*)\b/g

/** What hooks ask the environment for, in their command or their script, and do not find there, in words. */
export function missedVariables(
  groups: readonly HookGroup[],
  rules: EnvironmentRules & { readonly dir: string },
): readonly string[] {
  const texts = groups.flatMap((group) => [
    ...group.handlers.map(commandLineOf),
    ...scriptsOf(group, rules.dir).map(({ path }) => textOf(path)),
  ])
  const told = environmentFor(rules)
  const withheld = Object.keys(rules.env).filter((name) => !Object.hasOwn(told, name))
  const asked = withheld.filter((name) => texts.some((text) => new RegExp(`\\b${name}\\b`).test(text)))
  const unknown = new Set(
    texts.flatMap((text) => text.match(neverSet) ?? []).filter((name) => !Object.hasOwn(told, name)),
  )
  return [
    ...asked.map(
      (name) =>
        `${name} is not passed on to hooks, because it looks like a secret. Change that with --pass-env ${name}.`,
    ),
    ...[...unknown].map((name) => `${name} is not set, here or in Claude Code: the event is on standard input.`),
  ]
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
