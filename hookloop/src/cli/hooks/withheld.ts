import { readFileSync } from 'node:fs'
import { environmentFor, type EnvironmentRules } from '../../config/claude/hook-environment.ts'
import type { HookGroup } from '../../config/claude/handlers.ts'
import { commandLineOf, scriptsOf } from '../../config/claude/trusted-groups.ts'

/** Variables that look like secrets, and that a hook asks for which is not told them: by its command, or in its script. */
export function withheldFrom(
  groups: readonly HookGroup[],
  rules: EnvironmentRules & { readonly dir: string },
): readonly string[] {
  const told = environmentFor(rules)
  const kept = Object.keys(rules.env).filter((name) => !Object.hasOwn(told, name))
  if (kept.length === 0) return []
  const texts = groups.flatMap((group) => [
    ...group.handlers.map(commandLineOf),
    ...scriptsOf(group, rules.dir).map(({ path }) => textOf(path)),
  ])
  return kept.filter((name) => texts.some((text) => new RegExp(`\\b${name}\\b`).test(text)))
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
