import { hashText, type Json, type JsonObject } from '../../state/json.ts'
import { sanitizeText } from '../../system/sanitize-text.ts'
import { toAllowedTools, type AllowedTool } from './allowed-tools.ts'

/** A skill as it is used: everything that matters of its SKILL.md, and the folder its resources are in. */
export type Skill = {
  readonly name: string
  readonly description: string
  /** Its instructions, as they were written. */
  readonly body: string
  /** A fingerprint of its text: what `trust` may be given a list of. */
  readonly hash: string
  /** The real path of its folder. Missing for a skill that was declared in code. */
  readonly folder?: string
  readonly scope: 'code' | 'user' | 'project'
  /** The only tools that may be used while it is active. Missing: it says nothing about tools. */
  readonly allowedTools?: readonly AllowedTool[]
  /** The name of a model, to be looked up in the option `models`. */
  readonly model?: string
  readonly argumentHint?: string
  /** Whether the model may load it. */
  readonly modelInvocable: boolean
  /** Whether a person may ask for it with `/name`. */
  readonly userInvocable: boolean
}

/** A skill that is declared in code. */
export type SkillDefinition = {
  readonly name: string
  readonly description: string
  readonly body: string
  readonly allowedTools?: readonly string[]
  readonly model?: string
  readonly argumentHint?: string
  readonly disableModelInvocation?: boolean
  readonly userInvocable?: boolean
}

export type ReadSkill = { readonly skill: Skill; readonly remarks: readonly string[] } | { readonly problem: string }

/** What a SKILL.md is read into, and where it was. */
export type SkillFile = {
  readonly fields: JsonObject
  readonly body: string
  readonly text: string
  readonly folder: string
  readonly folderName: string
  readonly scope: Skill['scope']
}

const MAX_NAME = 64
const MAX_DESCRIPTION = 1_024
/** Of `allowed-tools`: it is kept in the state and looked at with every call. */
const MAX_LIST = 4_000
const MAX_ENTRIES = 200

/** Makes a skill of a SKILL.md, or says in words why it cannot be used. */
export function toSkill(file: SkillFile): ReadSkill {
  const { fields, folderName } = file
  const name = fields['name'] ?? folderName
  if (!isSkillName(name)) return { problem: `its name ${JSON.stringify(name).slice(0, 80)} must be ${NAME_WORDS}` }
  if (name !== folderName) return { problem: `it is called "${name}", and a skill is called like its folder` }
  const description = typeof fields['description'] === 'string' ? oneLine(fields['description']) : ''
  if (description === '') return { problem: 'it has no description' }
  const allowed = allowedOf(fields['allowed-tools'])
  if (allowed === 'broken')
    return {
      problem: `"allowed-tools" must be a text of up to ${MAX_LIST} characters or a list of up to ${MAX_ENTRIES} texts`,
    }
  const flags = flagsOf(fields)
  if (typeof flags === 'string') return { problem: `"${flags}" must be true or false` }
  const model = wordOf(fields['model'])
  const argumentHint = wordOf(fields['argument-hint'])
  return {
    skill: Object.freeze({
      name,
      description: description.slice(0, MAX_DESCRIPTION).toWellFormed(),
      body: sanitizeText(file.body).trim(),
      hash: hashText(file.text),
      folder: file.folder,
      scope: file.scope,
      ...flags,
      ...(allowed !== undefined && { allowedTools: allowed.tools }),
      ...(model !== undefined && model !== 'inherit' && { model }),
      ...(argumentHint !== undefined && { argumentHint }),
    }),
    remarks: [
      ...(allowed?.unknown ?? []).map(
        (entry) => `"${entry}" in its allowed-tools is not understood and allows nothing`,
      ),
      ...(fields['hookloop'] === undefined ? [] : ['its hooks are for projectHooks, and are not heeded here']),
      ...(fields['context'] === 'fork' ? ['"context: fork" is not supported: it is loaded into the conversation'] : []),
    ],
  }
}

/** The same for one that is declared in code. What is wrong with it is for its programmer. */
export function toDeclaredSkill(definition: SkillDefinition): ReadSkill {
  const { name, description, body, allowedTools, model, argumentHint } = definition
  if (!isSkillName(name)) return { problem: `its name must be ${NAME_WORDS}` }
  if (typeof description !== 'string' || oneLine(description) === '') return { problem: 'it has no description' }
  if (typeof body !== 'string') return { problem: 'its body must be a text' }
  const allowed = allowedOf(allowedTools)
  if (allowed === 'broken') return { problem: '"allowedTools" must be a list of texts' }
  if (allowed !== undefined && allowed.unknown.length > 0) {
    return { problem: `"${allowed.unknown[0]}" in its allowedTools is not understood` }
  }
  return {
    skill: Object.freeze({
      name,
      description: oneLine(description).slice(0, MAX_DESCRIPTION).toWellFormed(),
      body,
      hash: hashText(body),
      scope: 'code',
      modelInvocable: definition.disableModelInvocation !== true,
      userInvocable: definition.userInvocable !== false,
      ...(allowed !== undefined && { allowedTools: allowed.tools }),
      ...(model !== undefined && { model }),
      ...(argumentHint !== undefined && { argumentHint }),
    }),
    remarks: [],
  }
}

const NAME_WORDS = '1 to 64 small letters and digits, with single hyphens between them'

export function isSkillName(name: unknown): name is string {
  return typeof name === 'string' && name.length <= MAX_NAME && /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name)
}

/** What is shown in a list is one line, whatever it was: a line break would be another entry of the list. */
export function oneLine(text: string): string {
  return sanitizeText(text).replace(/\s+/g, ' ').trim()
}

/** An empty list allows nothing. Only a skill that does not mention tools leaves them alone. */
function allowedOf(value: unknown): ReturnType<typeof toAllowedTools> | 'broken' | undefined {
  if (value === undefined) return undefined
  if (value === null) return toAllowedTools([])
  if (typeof value === 'string') return value.length > MAX_LIST ? 'broken' : toAllowedTools([value])
  const isList =
    Array.isArray(value) && value.length <= MAX_ENTRIES && value.every((entry) => typeof entry === 'string')
  return isList ? toAllowedTools(value) : 'broken'
}

type Flags = Pick<Skill, 'modelInvocable' | 'userInvocable'>

/** A switch that cannot be read might have been meant to be off. */
function flagsOf(fields: JsonObject): Flags | string {
  const wrong = ['disable-model-invocation', 'user-invocable'].find(
    (name) => fields[name] !== undefined && typeof fields[name] !== 'boolean',
  )
  if (wrong !== undefined) return wrong
  return {
    modelInvocable: fields['disable-model-invocation'] !== true,
    userInvocable: fields['user-invocable'] !== false,
  }
}

function wordOf(value: Json | undefined): string | undefined {
  const word = typeof value === 'string' ? oneLine(value).slice(0, 200).toWellFormed() : ''
  return word === '' ? undefined : word
}
