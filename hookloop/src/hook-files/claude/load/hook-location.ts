import { existsSync, statSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { headSource } from './front-matter-hooks.ts'
import type { HookSource } from './handlers.ts'
import type { SettingsPlaces } from './read-settings.ts'

/** What somebody means who names a path: a project, a plugin, or one file of either. */
export type HookLocation = {
  readonly settings: Pick<SettingsPlaces, 'dir' | 'files' | 'plugins'>
  /** The folder of the plugin, if it is one. */
  readonly plugin?: string
  /** Whether it is the project itself. A plugin comes to a project from elsewhere. */
  readonly isProject: boolean
  /** What else it is, about which nothing can be said here. */
  readonly problem?: string
}

/** What a path stands for, or words for why it is nothing with hooks in it. */
export function locateHooks(path: string): HookLocation | string {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return `There is no folder or file ${path}.`
  if (stats.isDirectory()) return folderNamed(path)
  return fileNamed(path) ?? `${path} is no file of hooks. To run one script, name it with --handler.`
}

function folderNamed(folder: string): HookLocation {
  const name = basename(folder)
  if (['.claude', '.claude-plugin', '.hookloop'].includes(name)) return folderNamed(dirname(folder))
  const hasSettings = settingsIn(join(folder, '.claude')).length > 0
  if (existsSync(join(folder, manifest)) || (!hasSettings && existsSync(join(folder, 'hooks', 'hooks.json')))) {
    return pluginAt(folder, hasSettings)
  }
  const project = { settings: { dir: folder }, isProject: true }
  if (hasSettings) return project
  if (name === 'hooks' && existsSync(join(folder, 'hooks.json'))) return pluginAt(dirname(folder), false)
  const files = settingsIn(folder)
  if (files.length > 0) return { settings: { dir: folder, files }, isProject: true }
  if (!existsSync(join(folder, '.claude-plugin', 'marketplace.json'))) return project
  return { ...project, problem: `${folder} is a marketplace, whose plugins are not in force: name the folder of one.` }
}

const manifest = join('.claude-plugin', 'plugin.json')

function pluginAt(root: string, isProject: boolean): HookLocation {
  return { settings: { dir: root, plugins: [root] }, plugin: root, isProject }
}

function settingsIn(folder: string): readonly HookSource[] {
  const all = ['settings.json', 'settings.local.json'].map((name) => settingsFile(join(folder, name)))
  return all.filter(({ file }) => existsSync(file))
}

function settingsFile(file: string): HookSource {
  return { kind: basename(file) === 'settings.local.json' ? 'local' : 'project', file }
}

function fileNamed(file: string): HookLocation | undefined {
  const folder = dirname(file)
  if (['.claude-plugin', '.hookloop'].includes(basename(folder))) return folderNamed(folder)
  if (extname(file) === '.md') return headNamed(file)
  if (extname(file) !== '.json') return undefined
  const isSettings = basename(folder) === '.claude' || basename(file).startsWith('settings')
  const root = isSettings ? undefined : pluginOf(file)
  if (root === undefined) return { settings: { dir: projectOf(folder), files: [settingsFile(file)] }, isProject: true }
  return { settings: { dir: root, files: [{ kind: 'plugin', file, root }] }, plugin: root, isProject: false }
}

/** A skill, a command or an agent, of a project or of a plugin. */
function headNamed(file: string): HookLocation {
  const source = headSource(file)
  const plugin = above(file).find((folder) => existsSync(join(folder, manifest)))
  if (plugin === undefined) return { settings: { dir: projectOf(dirname(file)), files: [source] }, isProject: true }
  return { settings: { dir: plugin, files: [{ ...source, plugin }] }, plugin, isProject: false }
}

/** The plugin that a file belongs to: the folder with the manifest, or else the one above its `hooks`. */
function pluginOf(file: string): string | undefined {
  const folders = above(file)
  const found = folders.find((folder) => existsSync(join(folder, manifest)))
  if (found !== undefined || basename(file) !== 'hooks.json') return found
  return basename(folders[0]!) === 'hooks' ? folders[1] : folders[0]
}

/** The folder whose `.claude` something stands in, or one near it that has a `.claude`, or else where it stands. */
function projectOf(folder: string): string {
  const inside = /^(.+)[/\\]\.claude(?:[/\\]|$)/.exec(folder)?.[1]
  return inside ?? above(join(folder, 'x')).find((near) => existsSync(join(near, '.claude'))) ?? folder
}

/** The three folders that something stands in, from within. */
function above(path: string): readonly string[] {
  const first = dirname(path)
  return [first, dirname(first), dirname(dirname(first))]
}
