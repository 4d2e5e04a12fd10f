import { basename, dirname, join, resolve } from 'node:path'
import { SUBAGENT_KEY, type AgentState } from '../../state/agent-state.ts'
import { getActiveSkills } from '../../capabilities/skills/skills.ts'
import { isJsonObject, sameJson } from '../../state/json.ts'
import { problemOf, clause } from '../../errors.ts'
import { hook, type Hook } from '../../hooks/hook.ts'
import type { Matchable, Matcher } from '../../hooks/matchers.ts'
import { readFrontMatter } from '../../system/files/front-matter.ts'
import { entriesOf, markdownFiles } from '../markdown-files.ts'
import { invalid, readDocument, type ReadDocument } from './read-document.ts'
import { isInside, readWithFingerprint, realPath, type Fingerprint } from '../trust/fingerprint.ts'

/** A skill or an agent with hooks in its front matter, under `hookloop`. */
export type HookOwner = Fingerprint & {
  readonly kind: 'skill' | 'agent'
  readonly name: string
  /** Its folder, where its commands run. */
  readonly root: string
  readonly text: string
}

const skillFolders = ['.claude/skills', '.hookloop/skills']
const agentFolders = ['.claude/agents', '.hookloop/agents']
const MAX_DEPTH = 4

/** The skills and agents of a project that have hooks. The hooks themselves are not parsed. */
export function ownersIn(dir: string): readonly HookOwner[] {
  const skills = skillFolders.flatMap((folder) =>
    entriesOf(join(dir, folder)).map(({ name }) => join(dir, folder, name)),
  )
  const agents = agentFolders.flatMap((folder) => markdownFiles(join(dir, folder), { maxDepth: MAX_DEPTH }))
  const root = realPath(dir)
  return [...skills.flatMap(skillAt), ...agents.flatMap(agentAt)].filter(({ path }) => isInside(root, path))
}

/** The skill in a folder, if it has hooks. */
export function skillAt(folder: string): readonly HookOwner[] {
  return ownerAt(join(folder, 'SKILL.md'), { kind: 'skill', name: basename(resolve(folder)) })
}

/** The agent in a file, if it has hooks. */
export function agentAt(file: string): readonly HookOwner[] {
  return /\.md$/i.test(file) ? ownerAt(file, { kind: 'agent', name: basename(file).replace(/\.md$/i, '') }) : []
}

function ownerAt(file: string, { kind, name }: Pick<HookOwner, 'kind' | 'name'>): readonly HookOwner[] {
  const read = readWithFingerprint(file)
  if (read === undefined || !KEY.test(headOf(read.text))) return []
  return [{ ...read, kind, name, root: dirname(resolve(file)) }]
}

/** The key in any notation. Front matter is parsed only once the file is trusted. */
const KEY = /(?:^|[{,?])[ \t]*["']?hookloop["']?[ \t]*(?::|$)/m

function headOf(text: string): string {
  const end = /\n(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/.exec(text)
  return /^\uFEFF?---/.test(text) ? text.slice(0, end?.index ?? text.length) : ''
}

/**
 * The hooks in the front matter of a file with their lines, and the name of the owner. Undefined if there are none. Throws
 * if the front matter is invalid: it was meant to have hooks.
 */
export function frontMatterHooks({
  text,
  path,
  kind,
  name: usual,
}: Omit<HookOwner, 'hash' | 'root'>): { readonly document: ReadDocument; readonly name: string } | undefined {
  const { hookloop, name: given } = headFields(text, path)
  if (hookloop === undefined) return undefined
  const lines = headOf(text).split('\n')
  const first = lines.findIndex((line) => /^hookloop[ \t]*:/.test(line))
  const rest = lines.slice(first + 1)
  const length = rest.findIndex((line) => /^[^\s#]/.test(line) && !line.startsWith('- '))
  const block = [lines[first] ?? '', ...(length === -1 ? rest : rest.slice(0, length))]
  // Blank lines in front, so that problems have the line of the file.
  const { value, lineOf } = readDocument(`${'\n'.repeat(Math.max(0, first))}${block.join('\n')}`, path, true)
  if (!isJsonObject(value) || !sameJson(value['hookloop'] ?? null, hookloop)) {
    throw invalid(path, undefined, '"hookloop" must be at the start of a line, with its hooks below it')
  }
  const name = kind === 'agent' && typeof given === 'string' && given.trim() !== '' ? given.trim() : usual
  return { name, document: { value: hookloop, lineOf: (place) => lineOf(['hookloop', ...place]) } }
}

function headFields(text: string, file: string) {
  try {
    return readFrontMatter(text, { plainTexts: true }).fields
  } catch (error) {
    throw invalid(file, undefined, clause(problemOf(error)))
  }
}

/** The metadata key for the skills that were active in a conversation. Their hooks apply until it ends. */
export const SKILLS_WITH_HOOKS_KEY = 'hookloop.skillsWithHooks'

/** Matches when hooks of a skill or an agent apply: once the skill was active, or while the agent runs and when it ends. */
export function ownerIsActive({ kind, name }: Pick<HookOwner, 'kind' | 'name'>): Matcher {
  if (kind === 'skill') return ({ state }) => usedSkills(state).includes(name)
  return (ctx) => {
    const { subagent } = ctx as Matchable & { readonly subagent?: { readonly name: string } }
    return (subagent?.name ?? agentOf(ctx.state)) === name
  }
}

function agentOf({ metadata }: AgentState): string | undefined {
  const who = metadata[SUBAGENT_KEY]
  return isJsonObject(who) && typeof who['name'] === 'string' ? who['name'] : undefined
}

function storedSkills({ metadata }: AgentState): readonly string[] {
  const stored = metadata[SKILLS_WITH_HOOKS_KEY]
  return Array.isArray(stored) ? stored.filter((each) => typeof each === 'string') : []
}

function usedSkills(state: AgentState): readonly string[] {
  return [...new Set([...storedSkills(state), ...getActiveSkills(state)])]
}

/** A hook that stores in the conversation which of these skills were active. */
export function skillTracking(names: readonly string[]): Hook {
  return hook(
    ['beforeExecution', 'afterStep'],
    (ctx) => {
      const seen = usedSkills(ctx.state).filter((name) => names.includes(name))
      return seen.length === storedSkills(ctx.state).length
        ? ctx
        : ctx.withState((state) => state.withMetadata(SKILLS_WITH_HOOKS_KEY, [...seen]))
    },
    { name: 'projectHooks.skills', bookkeeping: true, priority: 50 },
  )
}
