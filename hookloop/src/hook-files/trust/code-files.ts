import { readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, extname, isAbsolute, join, resolve, sep } from 'node:path'
import { messageOf } from '../../errors.ts'
import { codeAt, codeInFolder, filesAt, isCode, isData, isScriptFile, scriptText, statAt } from './code-folder.ts'
import { fingerprint, isInside, readWithFingerprint, realPath, uniqueByPath, type Fingerprint } from './fingerprint.ts'
import { programsIn, type Program } from './programs.ts'
import { commandsIn, endings, entriesIn, languageOf, modulesOf, scriptsIn } from './script-language.ts'
import { referencesIn } from './script-references.ts'
import { commandsOf, expandHome, fillVariables, UNKNOWN, valuesIn, type Variables } from './shell-words.ts'

/** A command line for a shell, or a program with its arguments. */
export type HookCommand = string | readonly string[]

export type CodeIn = {
  /** The project. */
  readonly dir: string
  /** The working directory of the command. Default: `dir`. */
  readonly cwd?: string
  /** The values of variables in the command. */
  readonly variables?: Variables
  /** Whether the folders of scripts are included. Default: true. */
  readonly folders?: boolean
}

/**
 * Everything below a project that a command may read as code, with fingerprints:
 *
 * - each file that it names, and what those load or run: files, folders, installed packages
 * - the whole folder of the script that it runs, because a script can load any file beside it. The folder of the project and
 *   its `.claude` and `.hookloop` folders are too wide for that: there, only names count
 * - the files that define what `npm run`, `make` and similar programs do
 * - the whole project if the script itself is not known, as in `sh "$(…)"`
 *
 * Data files, which hooks write, and programs of the system are left out. So is the code that a linter or test runner works on.
 */
export function codeOf(command: HookCommand, places: CodeIn): readonly Fingerprint[] {
  const search = new CodeSearch(places)
  try {
    search.command(command)
  } catch (error) {
    return [{ path: realPath(places.dir), hash: '', problem: messageOf(error) }]
  }
  return search.found()
}

const MAX_SCANNED = 500
const MAX_LOOK_UPS = 200_000
/** So many folders that a script mentions are searched for the files that it mentions. */
const MAX_NEAR = 10

class CodeSearch {
  readonly #root: string
  readonly #cwd: string
  readonly #dir: string
  #variables: Variables
  readonly #withFolders: boolean
  /** Where relative names are looked up. */
  readonly #bases = new Set<string>()
  readonly #files = new Map<string, Fingerprint>()
  readonly #folders = new Map<string, readonly Fingerprint[]>()
  readonly #scripts = new Set<string>()
  readonly #names = new Map<string, ReadonlySet<string>>()
  readonly #lines = new Set<string>()
  #lookUps = 0
  /** Whether a script is read: there, a name that is known only in part means nothing. */
  #isInScript = false

  constructor({ dir, cwd = dir, variables = {}, folders = true }: CodeIn) {
    this.#withFolders = folders
    this.#dir = resolve(dir)
    this.#root = realPath(dir)
    this.#cwd = resolve(cwd)
    const dirs = { CLAUDE_PROJECT_DIR: this.#dir, HOOKLOOP_PROJECT_DIR: this.#dir, PWD: this.#cwd, HOME: homedir() }
    this.#variables = { ...(process.env as Variables), ...dirs, ...variables }
    for (const base of [this.#cwd, this.#dir]) this.#bases.add(base)
  }

  found(): readonly Fingerprint[] {
    return uniqueByPath([...this.#files.values(), ...[...this.#folders.values()].flat()])
  }

  command(command: HookCommand, depth = 0): void {
    const commands =
      typeof command === 'string'
        ? commandsOf(command, this.#variables, depth)
        : [command.map((word) => fillVariables(word, this.#variables))]
    this.#commands(commands, depth)
  }

  #commands(commands: readonly (readonly string[])[], depth: number): void {
    for (const words of commands)
      for (const word of words)
        if (!this.#isInScript || /^(?:cd|pushd)$/.test(words[0]!) || /^\w*PATH=/.test(word)) this.#rememberFolders(word)
    const programs = commands.flatMap(programsIn)
    const isCopied = programs.some(({ name }) => copying.test(name ?? '')) && programs.some(runsScripts)
    const isPiped = !this.#isInScript && (isCopied || programs.some(({ readsInput }) => readsInput)) // `cat x | sh`
    for (const program of programs) this.#program(program, { isPiped, depth })
  }

  /** The commands of a script, or a text that may be commands. */
  #maybeCommands(text: string, depth: number, path?: string): void {
    const before = [this.#variables, this.#isInScript] as const
    if (path !== undefined) this.#variables = { ...this.#variables, 0: path, BASH_SOURCE: path }
    this.#isInScript = true
    try {
      this.#commands(parsed(text, this.#variables, depth), depth)
    } finally {
      ;[this.#variables, this.#isInScript] = before
    }
  }

  /** For `cd hooks && ./check.sh`, and for scripts that search in a folder. */
  #rememberFolders(word: string): void {
    const bases = [...this.#bases]
    for (const name of valuesIn(word).map(expandHome))
      for (const base of bases) if (this.#isFolder(resolve(base, name))) this.#bases.add(resolve(base, name))
  }

  #program(program: Program, how: { isPiped: boolean; depth: number }): void {
    const { name, words, args, kind, manifests, viaPackage, isInterpreter, isShell } = program
    if (/^(?:cd|pushd)$/.test(name ?? '')) return
    if (name !== undefined && /\s/.test(name)) return this.#maybeCommands(name, how.depth + 1) // `env -S "sh script"`
    for (const each of manifests) for (const path of this.#paths(each)) this.#definition(path, words, how.depth)
    if (name !== undefined) this.#executable(name, viaPackage)
    if (viaPackage) for (const word of args) if (/^[\w@-]+$/.test(word)) this.#executable(word, true)
    const isScript = !isInterpreter && name?.includes('/') === true && this.#lookUp(name).some(isScriptFile)
    const mayRun = this.#isInScript ? runsScripts(program) : kind === 'runs' && !isScript
    let isBefore = how.isPiped || mayRun // before the first operand, which is the script
    const runBy = runsScripts(program) ? basename(name!) : ''
    let before = ''
    for (const word of args) {
      const isOption = /^[-+]/.test(word)
      const isText = programText.test(before)
      if (isText || isTextual.test(word)) this.#inline(word, isShell ? how.depth : undefined, runBy)
      if (kind === 'runs' && !isInterpreter)
        for (const value of valuesIn(word)) if (/\s/.test(value)) this.#maybeCommands(value, how.depth + 1)
      this.#operand(word, { isScript: isBefore || loading.test(word), isText, runBy })
      if (isText || (!isOption && !/^[-+][^=]*$/.test(before) && !/^\w+=/.test(word))) isBefore = how.isPiped
      before = word
    }
  }

  /** A program by its path, or one that a name finds inside the project. */
  #executable(name: string, viaPackage: boolean): void {
    if (name === '.') return // the command of a shell
    if (/[/.\0]/.test(name)) return this.#operand(name, { isScript: true, isText: false, runBy: '' })
    const folders = (this.#variables['PATH'] ?? '').split(':').map((folder) => resolve(this.#cwd, folder))
    const own = folders.filter((folder) => isInside(this.#root, realPath(folder)))
    const named = [...this.#bases].filter((base) => base !== this.#cwd && base !== this.#dir) // `PATH=$PWD/bin:$PATH; tool`
    const installed = viaPackage ? [...this.#bases].map((base) => join(base, 'node_modules', '.bin')) : []
    for (const folder of [...own, ...named, ...installed])
      for (const path of filesAt(join(folder, name))) this.#script(path, true)
  }

  /** A word of a command. `isScript`: it may be the script that an interpreter runs. `isText`: it is a program itself. */
  #operand(word: string, how: { isScript: boolean; isText: boolean; runBy: string }): void {
    const { isScript, isText, runBy } = how
    for (const name of valuesIn(word)) {
      const isPartly = !isText && !isTextual.test(word) && inserted.test(name) && name !== UNKNOWN
      if (isPartly || word === UNKNOWN) this.#open(name, isScript)
      for (const path of this.#lookUp(name)) if (isScript || !isDataOf(path)) this.#script(path, isScript, runBy)
      if (!isScript || isText) continue
      const folders = this.#paths(name).filter((each) => this.#isFolder(each))
      for (const path of folders) this.#folder(path, true)
    }
  }

  /** A program text as an argument, such as after `bash -c` or `node -e`. Only that of a shell is read as commands. */
  #inline(text: string, shellDepth: number | undefined, language: string): void {
    if (shellDepth !== undefined) this.command(text, shellDepth + 1)
    for (const name of referencesIn(text).paths)
      for (const path of this.#paths(name)) for (const file of filesAt(path)) this.#script(file, false)
    this.#references(text, { folder: this.#cwd, language })
  }

  /** A name that is known only in part. The folder in front of the unknown part decides; without one, any file may be meant. */
  #open(name: string, isScript: boolean): void {
    const [before = '', ...after] = name.split(inserted)
    const last = after.at(-1)!.replace(/^[^/]*\//, '')
    if (last !== '') for (const path of this.#lookUp(last)) this.#script(path, isScript)
    if (!isScript) return
    const folder = before.includes('/') ? before.slice(0, before.lastIndexOf('/') + 1) : ''
    if (folder !== '') for (const path of this.#paths(folder)) this.#folder(path)
    else if (this.#isInScript) return
    else if (name.includes(UNKNOWN)) this.#cover(this.#root)
    else for (const base of this.#bases) for (const file of codeAt(base)) this.#script(file, true)
  }

  #paths(name: string): readonly string[] {
    const plain = expandHome(name)
    if (plain.includes('\0') || plain.length > 1_000) return []
    return isAbsolute(plain) ? [plain] : [...this.#bases].map((base) => join(base, plain))
  }

  /** The files that a name may mean. */
  #lookUp(name: string): readonly string[] {
    if (name === '' || /^\.{1,2}\/*$/.test(name)) return []
    const dotted = /^\w+(?:\.\w+)+$/.test(name) ? [name.replaceAll('.', '/'), name.split('.')[0]!] : [] // of Python
    return [name, ...dotted].flatMap((each) => this.#paths(each)).flatMap((path) => this.#filesNamed(path, endings))
  }

  /** The files with a path and one of these endings. Folders are read once: most names are not files. */
  #filesNamed(path: string, ends: readonly string[]): readonly string[] {
    const name = basename(path)
    const has = this.#namesAt(dirname(path))
    return ends.filter((end) => has.has(end.startsWith('/') ? name : name + end)).flatMap((end) => filesAt(path + end))
  }

  #namesAt(folder: string): ReadonlySet<string> {
    if (++this.#lookUps > MAX_LOOK_UPS) throw new Error('its command mentions too many files to check them')
    if (!this.#names.has(folder)) this.#names.set(folder, namesIn(folder))
    return this.#names.get(folder)!
  }

  #isFolder(path: string): boolean {
    const isNamed = path === dirname(path) || this.#namesAt(dirname(path)).has(basename(path))
    return isNamed && statAt(path)?.isDirectory() === true
  }

  /** A file that is code: its content counts, what it loads, and what is beside it. */
  #script(path: string, withFolder: boolean, runBy = ''): void {
    const real = realPath(path)
    const isOwn = isInside(this.#root, real)
    if (real === realPath(process.execPath) || (!isOwn && ofSystem.test(real))) return
    if (withFolder)
      for (const file of new Set([real, join(realPath(dirname(path)), basename(path))])) this.#folder(dirname(file))
    if (this.#files.has(real)) return
    this.#files.set(real, fingerprint(real) ?? { path: real, hash: '', problem: 'it cannot be read' })
    if (!isOwn) return
    if (this.#scripts.size >= MAX_SCANNED) throw new Error(`its command loads more than ${MAX_SCANNED} files`)
    this.#scripts.add(real)
    if (real.endsWith('.json')) return
    const text = scriptText(real) ?? ''
    const language = languageOf(real, text, runBy)
    const commands = commandsIn(real, text, language)
    if (commands !== undefined) this.#maybeCommands(commands, 1, real)
    this.#references(text, { folder: dirname(real), language })
  }

  #references(text: string, { folder, language }: { readonly folder: string; readonly language: string }): void {
    const { names, paths, sourced, evaluated, folders, near, modules } = referencesIn(text)
    const { ends, isPathOnly, hasPackages, isShell } = modulesOf(language)
    const known = [...new Set([folder, ...this.#bases])]
    const mentioned = near
      .flatMap((name) => known.map((base) => resolve(base, name)))
      .filter((at) => this.#isFolder(at))
    const places = [...new Set([...known, ...mentioned.slice(0, MAX_NEAR)])]
    const candidates = (name: string): readonly string[] => [
      ...(isAbsolute(name) ? [name] : []),
      ...places.map((place) => join(place, name)),
    ]
    const files = (all: readonly string[], ends: readonly string[]): readonly string[] =>
      all.flatMap(candidates).flatMap((path) => this.#filesNamed(path, ends))
    const loaded = isPathOnly ? names.filter((name) => name.includes('/')) : names
    // What a shell script runs is known from its commands, so that a file without an extension that it writes is no code.
    const isLoaded = (path: string): boolean => isCode(path) || (!isShell && extname(path) === '')
    const code = [...files(paths, ['']), ...files(loaded, ends)].filter(isLoaded)
    const read = isShell ? [] : [...sourced, ...evaluated]
    for (const file of [...code, ...files(read, [''])]) this.#script(file, isPackage.test(file))
    if (!isShell && language !== '')
      for (const path of folders.flatMap(candidates)) if (this.#isFolder(path)) this.#folder(path)
    if (hasPackages) for (const name of modules) this.#module(name, folder, ends)
  }

  /** What `import` and `require` load: a file, an installed package, or what the package of the script itself names. */
  #module(name: string, folder: string, ends: readonly string[]): void {
    if (/^[./]/.test(name))
      for (const file of this.#filesNamed(resolve(folder, name), ends)) this.#script(file, isPackage.test(file))
    const [own] = /^(?:@[^/]+\/)?[^/.]+/.exec(name) ?? []
    if (own === undefined) return
    for (let at = folder; at === this.#root || isInside(this.#root, at); at = dirname(at)) {
      const installed = join(at, 'node_modules', own)
      if (this.#isFolder(installed)) this.#folder(installed)
      this.#entries(at, own)
    }
  }

  /** The files that a package.json says are loaded if a program imports its folder, its name or `#name`. */
  #entries(folder: string, by?: string): void {
    const real = realPath(folder)
    if (real !== this.#root && !isInside(this.#root, real)) return
    for (const file of this.#filesNamed(join(folder, 'package.json'), [''])) {
      const { name, files } = entriesIn(scriptText(file) ?? '')
      if (by !== undefined && by !== name && !by.startsWith('#')) continue
      this.#script(file, false)
      for (const each of files)
        for (const path of this.#filesNamed(resolve(folder, each), endings)) this.#script(path, true)
    }
  }

  /** The file that defines the commands of a program: all of it counts, and of its commands those that are named. */
  #definition(path: string, words: readonly string[], depth: number): void {
    for (const file of filesAt(path)) {
      const real = realPath(file)
      if (basename(real) !== 'package.json') this.#script(file, false)
      else if (isInside(this.#root, real)) {
        const read = readWithFingerprint(real)
        if (read !== undefined) this.#files.set(real, { path: real, hash: read.hash })
        for (const line of scriptsIn(read?.text ?? '', words)) {
          if (this.#lines.has(line)) continue
          this.#lines.add(line)
          this.command(`npx ${line}`, depth + 1)
        }
      }
    }
  }

  /** Everything in a folder of the project, unless other things are in it as well. */
  #folder(folder: string, isRun = false): void {
    if (isRun) this.#entries(folder)
    const real = unitOf(realPath(folder))
    if (!isInside(this.#root, real) || isShared(real, this.#root)) return
    this.#cover(real)
  }

  #cover(folder: string): void {
    if (this.#withFolders && !this.#folders.has(folder)) this.#folders.set(folder, codeInFolder(folder))
  }
}

function namesIn(folder: string): ReadonlySet<string> {
  try {
    return new Set(readdirSync(folder))
  } catch {
    return new Set()
  }
}

/** A word that is more than a name: a program, or a text. */
const isTextual = /\s|[;&|()<>'"]/

/** An argument of a program that works on files: not code if it is a data file, or has no extension and cannot be run. */
function isDataOf(path: string): boolean {
  return isData(path) || (!basename(path).includes('.') && !isCode(path))
}

/** Whether a program runs the script that it is called with. */
function runsScripts({ name, isInterpreter }: Program): boolean {
  return isInterpreter || /^(?:source|\.|run-parts)$/.test(name ?? '')
}

/** The commands of a text, none if it cannot be read. */
function parsed(text: string, variables: Variables, depth: number): readonly (readonly string[])[] {
  try {
    return commandsOf(text, variables, depth)
  } catch {
    return []
  }
}

const copying = /^(?:cp|mv|ln|install)$/

/** The file by which a folder is loaded as one module. */
const isPackage = /\/(?:__init__\.py|__main__\.py|index\.\w+)$/

/** What a shell replaces by names of files. */
const inserted = /[\0*?[{]/

/** Variables whose value is code, or a program that others run. */
const loading =
  /^(?:LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES|BASH_ENV|ENV|NODE_OPTIONS|PYTHONSTARTUP|PERL5OPT|RUBYOPT|\w*(?:EDITOR|PAGER|SHELL)|GIT_\w+|--exec-path)=/

/** Options whose value is a program, as in `bash -lc`, `node -e` and `python3 -m`. */
const programText = /^(?:-[A-Za-z]*[cem]|-p|--eval|--print|--command)$/

/** Of an installed package, all of it. */
function unitOf(folder: string): string {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/@.][^/]*/.exec(folder)?.[0] ?? folder
}

/** Folders in which other things than the code of hooks are. */
function isShared(folder: string, root: string): boolean {
  const parts = folder.slice(root.length + 1).split(sep)
  return (
    (parts.length === 1 && ['.claude', '.hookloop'].includes(parts[0]!)) ||
    /^(?:node_modules|\.bin)$/.test(parts.at(-1)!)
  )
}

/** Programs of the system change with every update, and only an administrator can change them. */
const ofSystem = /^\/(?:bin|sbin|lib\w*|usr|opt|nix|etc|dev|proc|sys|System|Library|Applications)\//
