import { readFileSync } from 'node:fs'
import { environmentFor, type EnvironmentRules } from '../../hook-files/claude/run/hook-environment.ts'
import type { HookGroup } from '../../hook-files/claude/load/handlers.ts'
import { commandLineOf, scriptsOf } from '../../hook-files/claude/load/trusted-groups.ts'

/** Variables that many published hooks read although Claude Code does not set them: the event contains the data. */
const neverSet = /\bCLAUDE_(?:TOOL_\w+|FILE_PATHS?|SESSION_ID|HOOK_EVENT\w*)\b/g

/** Whether a command or a script reads a variable, sets it nowhere and has no value to use instead. */
function dependsOn(text: string, name: string): boolean {
  const code = text.replaceAll(/^\s*(?:#|\/\/).*$|\s#.*$/gm, '')
  if (new RegExp(`\\b${name}=|\\$\\{${name}:?[-+=]|\\[\\s*-[nz]\\s+"?\\$\\{?${name}`).test(code)) return false
  const read = `\\$\\{?${name}\\b|env\\.${name}\\b|env\\[['"]${name}['"]\\]|environ\\[['"]${name}['"]\\]`
  return new RegExp(`(?:${read})(?!\\s*(?:\\?\\?|\\|\\|))|(?:getenv|\\.get)\\(['"]${name}['"]\\)(?!\\s*or\\b)`).test(
    code,
  )
}

/** Notes about variables that the commands or scripts of hooks read and that are not set. */
export function missingVariables(
  groups: readonly HookGroup[],
  rules: EnvironmentRules & { readonly dir: string },
): readonly string[] {
  const texts = groups.flatMap((group) => [
    ...group.handlers.map(commandLineOf),
    ...scriptsOf(group, rules.dir).map(({ path }) => textOf(path)),
  ])
  const passed = environmentFor(rules)
  const withheld = Object.keys(rules.env).filter((name) => !Object.hasOwn(passed, name))
  const read = withheld.filter((name) => texts.some((text) => new RegExp(`\\b${name}\\b`).test(text)))
  const unknown = new Set(
    texts.flatMap((text) =>
      (text.match(neverSet) ?? []).filter((name) => !Object.hasOwn(passed, name) && dependsOn(text, name)),
    ),
  )
  return [
    ...read.map(
      (name) => `${name} is not passed to hooks, because it looks like a secret. Pass it with --pass-env ${name}.`,
    ),
    ...[...unknown].map((name) => `${name} is not set, here or in Claude Code: read the event from stdin instead.`),
  ]
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
