import { checkArgument } from '../../values/check-options.ts'
import { readdirSync, realpathSync, type Dirent } from 'node:fs'
import { join, relative } from 'node:path'
import { defineAgent, definitionLimits, type AgentDefinition } from './agent-definition.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import { AgentError, messageOf, clause } from '../../errors.ts'
import { readFrontMatter } from '../../system/files/front-matter.ts'
import { readText } from '../../system/files/read-text.ts'
import { loadYaml } from '../../system/files/yaml.ts'

/** A file that defines no agent, or of which a part is ignored, and why. */
export type AgentFileProblem = { readonly file: string; readonly message: string }

/** The agents of a folder by name, and the problems of its files. */
export type AgentFiles = {
  readonly agents: { readonly [name: string]: AgentDefinition }
  readonly problems: readonly AgentFileProblem[]
}

const MAX_BYTES = 262_144
const MAX_FILES = 500
const MAX_DEPTH = 4

/**
 * Reads agent definitions from the Markdown files of folders such as `.claude/agents`: fields in the front matter,
 * instructions below. A file that cannot be read is reported in `problems`, so that a broken file does not hide the others. Of two
 * agents with the same name the first one is used. A missing folder has no agents.
 */
export function readAgents(...folders: readonly string[]): AgentFiles {
  for (const folder of folders) checkArgument('readAgents', ['folder', folder], typeof folder === 'string', 'a path')
  const agents = new Map<string, AgentDefinition>()
  const problems: AgentFileProblem[] = []
  for (const folder of folders) {
    for (const { file, link } of filesIn(folder, problems)) {
      try {
        if (link) throw new Error('it is a link, and links are not followed')
        const { definition, ignored } = definedIn(readText(join(folder, file), { maxBytes: MAX_BYTES }), nameOf(file))
        if (agents.has(definition.name)) throw new Error(`there is an agent "${definition.name}" already`)
        agents.set(definition.name, definition)
        for (const message of ignored) problems.push({ file: join(folder, file), message })
      } catch (thrown) {
        problems.push({ file: join(folder, file), message: messageOf(thrown) })
      }
    }
  }
  return Object.freeze({ agents: Object.freeze(Object.fromEntries(agents)), problems: Object.freeze(problems) })
}

type Defined = { readonly definition: AgentDefinition; readonly ignored: readonly string[] }

/** The agent that a Markdown file defines, and what in it is ignored. Throws if it defines none. */
export function fromAgentMarkdown(text: string, name?: string): Defined {
  checkArgument('fromAgentMarkdown', ['text', text], typeof text === 'string', 'the text of a file')
  checkArgument('fromAgentMarkdown', ['name', name], name === undefined || typeof name === 'string', 'a string')
  try {
    return definedIn(text, name)
  } catch (thrown) {
    if (thrown instanceof AgentError) throw thrown
    const which = name === undefined ? '' : ` "${name}"`
    const message = `The agent definition${which} is invalid: ${clause(messageOf(thrown))}.`
    throw new AgentError('AGENT_INVALID_OPTION', message, { value: text, cause: thrown })
  }
}

function definedIn(text: string, name?: string): Defined {
  const { fields, body } = readFrontMatter(text, { plainTexts: true })
  const ignored: string[] = []
  const tools = namesOf(fields, 'tools', ignored)
  const disallowedTools = namesOf(fields, 'disallowedTools', ignored)
  const model = textOf(fields, 'model')
  const limits = definitionLimits.flatMap((field) => amountOf(fields, field))
  const turns = amountOf(fields, 'maxTurns').map(([, value]) => ['maxSteps', value] as const)
  const definition = defineAgent({
    name: textOf(fields, 'name') ?? name ?? '',
    description: textOf(fields, 'description') ?? '',
    instructions: body.trim(),
    ...(tools !== undefined && { tools }),
    ...(disallowedTools !== undefined && { disallowedTools }),
    ...(model !== undefined && model !== 'inherit' && { model }),
    ...(Object.fromEntries([...turns, ...limits]) as Partial<AgentDefinition>),
  })
  const unknown = Object.keys(fields).filter((field) => !heeded.has(field))
  if (unknown.length > 0) ignored.push(`ignored: ${unknown.join(', ')}`)
  if (fields['hookloop'] !== undefined) ignored.push('its hooks are for projectHooks, and are ignored here')
  return { definition, ignored }
}

/** Writes a definition as a Markdown file. An empty list of tools stays empty, and an omitted one stays omitted. */
export function toAgentMarkdown(definition: AgentDefinition): string {
  const { instructions, ...fields } = defineAgent(definition)
  return `---\n${loadYaml().stringify(fields, { lineWidth: 0 })}---\n\n${instructions.trim()}\n`
}

const heeded: ReadonlySet<string> = new Set([
  'name',
  'description',
  'tools',
  'disallowedTools',
  'model',
  'maxTurns',
  'hookloop',
  ...definitionLimits,
])

function textOf(fields: JsonObject, field: string): string | undefined {
  if (!Object.hasOwn(fields, field)) return undefined
  const value = fields[field]
  if (typeof value === 'string' && value.trim() !== '') return value.trim()
  throw new Error(`"${field}" must be a text`)
}

function amountOf(fields: JsonObject, field: string): readonly (readonly [string, number])[] {
  if (!Object.hasOwn(fields, field)) return []
  const value = fields[field]
  if (typeof value === 'number' && value >= 0) return [[field, value]]
  throw new Error(`"${field}" must be a number from 0 up`)
}

/**
 * A list of tools, or text separated by commas. An empty value is ambiguous and rejected. A rule such as `Bash(git log)`
 * allows or forbids a part of a tool, which is not supported: such a tool is not given, or forbidden completely.
 */
function namesOf(
  fields: JsonObject,
  field: 'tools' | 'disallowedTools',
  ignored: string[],
): readonly string[] | undefined {
  if (!Object.hasOwn(fields, field)) return undefined
  const names = namesIn(fields[field]!)
  if (names === undefined) throw new Error(`"${field}" must be a list of names; [] is none, and left out is all`)
  if (field === 'tools' && names.length === 1 && names[0] === '*') return undefined
  return names.flatMap((name) => {
    const [whole, tool] = /^([^()]+)\(.*\)$/s.exec(name) ?? [name, name]
    if (tool === name) return [name]
    ignored.push(
      field === 'tools'
        ? `"${whole}" is not given: rules for a part of a tool are not supported`
        : `"${whole}" is forbidden completely`,
    )
    return field === 'tools' ? [] : [tool.trim()]
  })
}

function namesIn(value: Json): readonly string[] | undefined {
  const names = typeof value === 'string' ? splitNames(value) : value
  if (!Array.isArray(names) || (typeof value === 'string' && names.length === 0)) return undefined
  if (!names.every((each) => typeof each === 'string' && each.trim() !== '')) return undefined
  return (names as readonly string[]).map((each) => each.trim())
}

/** Splits at commas outside of brackets: `Bash(git log, git diff), Read`. */
function splitNames(text: string): readonly string[] {
  return (text.match(/(?:[^,()]|\([^()]*\))+/g) ?? []).map((each) => each.trim()).filter((each) => each !== '')
}

type Found = { readonly file: string; readonly link: boolean }

/** The Markdown files of a folder and its subfolders, sorted by name. */
function filesIn(folder: string, problems: AgentFileProblem[]): readonly Found[] {
  const found: Found[] = []
  const visit = (at: string, depth: number): void => {
    for (const entry of entriesOf(at, problems)) {
      const path = join(at, entry.name)
      if (entry.isDirectory() && depth < MAX_DEPTH) visit(path, depth + 1)
      else if (/\.md$/i.test(entry.name)) found.push({ file: relative(folder, path), link: entry.isSymbolicLink() })
    }
  }
  visit(folder, 1)
  if (found.length > MAX_FILES) {
    problems.push({ file: folder, message: `it holds ${found.length} files, of which ${MAX_FILES} are read` })
  }
  return found.slice(0, MAX_FILES)
}

function entriesOf(folder: string, problems: AgentFileProblem[]): readonly Dirent[] {
  try {
    return readdirSync(realpathSync(folder), { withFileTypes: true }).toSorted((a, b) => (a.name < b.name ? -1 : 1))
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT') problems.push({ file: folder, message: messageOf(thrown) })
    return []
  }
}

function nameOf(file: string): string {
  return file.replace(/^.*[\\/]/, '').replace(/\.md$/i, '')
}
