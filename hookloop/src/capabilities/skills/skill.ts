import { definedOptions } from '../../values/check-options.ts'
import { hashText, type Json, type JsonObject } from '../../values/json.ts'
import { sanitizeText } from '../../system/sanitize-text.ts'
import { toAllowedTools, type AllowedTool } from './allowed-tools.ts'

/** A skill: the contents of its SKILL.md, and the folder of its resources. */
export type Skill = {
  readonly name: string
  readonly description: string
  /** Its instructions. */
  readonly body: string
  /** The hash of its text, for the option `trust`. */
  readonly hash: string
  /** The real path of its folder. Missing for a skill defined in code. */
  readonly folder?: string
  readonly scope: 'code' | 'user' | 'project'
  /** The only tools that may be used while it is active. Missing if it does not restrict tools. */
  readonly allowedTools?: readonly AllowedTool[]
  /** The name of a model in the option `models`. */
  readonly model?: string
  readonly argumentHint?: string
  /** Whether the model may load it. */
  readonly modelInvocable: boolean
  /** Whether the user may invoke it with `/name`. */
  readonly userInvocable: boolean
}

/** A skill defined in code, for `skills({ skills })`. */
export type SkillDefinition = {
  /** 1 to 64 lower-case letters and digits, with single hyphens between them. */
  readonly name: string
  /** When to use it. */
  readonly description: string
  /** The instructions, with `$ARGUMENTS` where arguments are inserted. */
  readonly body: string
  /** The only tools that may be used while it is active, such as `Bash(git diff:*)`. Default: no restriction. */
  readonly allowedTools?: readonly string[]
  /** The name of a model in the option `models`. Default: the model of the agent. */
  readonly model?: string
  /** Shown to the model with the description. Default none. */
  readonly argumentHint?: string
  /** Whether only the user may use it. Default false. */
  readonly disableModelInvocation?: boolean
  /** Whether the user may invoke it with `/name`. Default true. */
  readonly userInvocable?: boolean
}

export type ReadSkill = { readonly skill: Skill; readonly remarks: readonly string[] } | { readonly problem: string }

/** A SKILL.md, and where it is. */
type SkillFile = {
  readonly fields: JsonObject
  readonly body: string
  readonly text: string
  readonly folder: string
  readonly folderName: string
  readonly scope: Skill['scope']
}

const MAX_NAME = 64
const MAX_DESCRIPTION = 1_024
/** Limits of `allowed-tools`, which is stored in the state and checked with every call. */
const MAX_LIST = 4_000
const MAX_ENTRIES = 200

/** Reads a skill from a SKILL.md, or says why it is invalid. */
export function toSkill({ fields, body, text, folder, folderName, scope }: SkillFile): ReadSkill {
  const name = fields['name'] ?? folderName
  if (name !== folderName) return { problem: `its name ${shown(name)} must be the name of its folder` }
  // It might have been meant to be off.
  const wrong = ['disable-model-invocation', 'user-invocable'].find(
    (flag) => fields[flag] !== undefined && typeof fields[flag] !== 'boolean',
  )
  if (wrong !== undefined) return { problem: `"${wrong}" must be true or false` }
  const model = wordOf(fields['model'])
  const made = makeSkill({
    name,
    description: typeof fields['description'] === 'string' ? fields['description'] : '',
    body: sanitizeText(body).trim(),
    hash: hashText(text),
    folder,
    scope,
    allowed: fields['allowed-tools'],
    model: model === 'inherit' ? undefined : model,
    argumentHint: wordOf(fields['argument-hint']),
    modelInvocable: fields['disable-model-invocation'] !== true,
    userInvocable: fields['user-invocable'] !== false,
  })
  if ('problem' in made) return made
  const remarks = [
    ...made.unknown.map((entry) => `"${entry}" in its allowed-tools is unknown and allows nothing`),
    ...(fields['hookloop'] === undefined ? [] : ['its hooks are used by projectHooks only']),
    ...(fields['context'] === 'fork'
      ? ['"context: fork" is not supported: the skill is loaded into the conversation']
      : []),
  ]
  return { skill: made.skill, remarks }
}

/** The same for a skill defined in code. */
export function toDeclaredSkill(definition: SkillDefinition): ReadSkill {
  const { disableModelInvocation = false, userInvocable = true, allowedTools, ...rest } = definition
  const made = makeSkill({
    ...rest,
    hash: hashText(rest.body),
    scope: 'code',
    allowed: allowedTools,
    modelInvocable: !disableModelInvocation,
    userInvocable,
  })
  if ('problem' in made) return made
  const [unknown] = made.unknown
  return unknown === undefined
    ? { skill: made.skill, remarks: [] }
    : { problem: `"${unknown}" in its allowedTools is unknown` }
}

type Given = Pick<Skill, 'body' | 'description' | 'hash' | 'modelInvocable' | 'scope' | 'userInvocable'> & {
  readonly name: unknown
  readonly allowed: unknown
  readonly folder?: string | undefined
  readonly model?: string | undefined
  readonly argumentHint?: string | undefined
}

function makeSkill(
  given: Given,
): { readonly skill: Skill; readonly unknown: readonly string[] } | { readonly problem: string } {
  const { name, description: text, allowed: list, ...rest } = given
  if (!isSkillName(name)) return { problem: `its name ${shown(name)} must be ${NAME_RULE}` }
  const description = oneLine(text)
  if (description === '') return { problem: 'it has no description' }
  const allowed = allowedOf(list)
  if (allowed === 'invalid') return { problem: LIST_RULE }
  const skill = definedOptions({
    ...rest,
    name,
    description: description.slice(0, MAX_DESCRIPTION).toWellFormed(),
    allowedTools: allowed?.tools,
  }) as Skill
  return { skill: Object.freeze(skill), unknown: allowed?.unknown ?? [] }
}

function shown(name: unknown): string {
  return JSON.stringify(name).slice(0, 80)
}

const LIST_RULE = `"allowed-tools" must be a string of up to ${MAX_LIST} characters or a list of up to ${MAX_ENTRIES} strings`
const NAME_RULE = '1 to 64 lower-case letters and digits, with single hyphens between them'

function isSkillName(name: unknown): name is string {
  return typeof name === 'string' && name.length <= MAX_NAME && /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name)
}

/** Text on one line: a line break would look like another entry of a list. */
export function oneLine(text: string): string {
  return sanitizeText(text).replace(/\s+/g, ' ').trim()
}

/** An empty list allows nothing; a missing one does not restrict tools. */
function allowedOf(value: unknown): ReturnType<typeof toAllowedTools> | 'invalid' | undefined {
  if (value === undefined) return undefined
  if (value === null) return toAllowedTools([])
  if (typeof value === 'string') return value.length > MAX_LIST ? 'invalid' : toAllowedTools([value])
  const isList =
    Array.isArray(value) && value.length <= MAX_ENTRIES && value.every((entry) => typeof entry === 'string')
  return isList ? toAllowedTools(value) : 'invalid'
}

function wordOf(value: Json | undefined): string | undefined {
  const word = typeof value === 'string' ? oneLine(value).slice(0, 200).toWellFormed() : ''
  return word === '' ? undefined : word
}
