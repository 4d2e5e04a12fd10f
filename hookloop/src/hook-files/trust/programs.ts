import { UNKNOWN } from './shell-words.ts'

/** A program with its arguments, and how it treats the files that it is called with. */
export type Program = {
  readonly name: string | undefined
  readonly args: readonly string[]
  /** The whole command. */
  readonly words: readonly string[]
  /** `works`: they are what it works on. `runs`: the first may be a script. */
  readonly kind: 'works' | 'runs'
  /** Whether it runs scripts in any case. */
  readonly isInterpreter: boolean
  /** The names of files that define what it does. */
  readonly manifests: readonly string[]
  /** Whether it runs programs of installed packages. */
  readonly viaPackage: boolean
  /** Whether it is a shell, whose arguments may be commands. */
  readonly isShell: boolean
  /** Whether it runs what it reads from its input. */
  readonly readsInput: boolean
}

/**
 * The program of a command, and those that it runs by its arguments: after `-exec` of `find`, or an interpreter, as in
 * `xargs -a list sh script` and `parallel sh ::: script`.
 */
export function programsIn(words: readonly string[]): readonly Program[] {
  const program = programOf(words)
  const inner = program.args.flatMap((word, i, args) => {
    const isRun = /^-(?:exec|ok)(?:dir)?$/.test(args[i - 1] ?? '')
    const isPassed = program.kind === 'runs' && interpreters.test(nameOf(word)) && !program.isInterpreter
    return isRun || isPassed
      ? [args.slice(i).flatMap((each) => (each === ':::' ? [] : each === '{}' ? UNKNOWN : each))]
      : []
  })
  return [program, ...inner.map(programOf)]
}

/** Splits the words of a command into a program and its arguments. What is in front of the program is skipped. */
function programOf(words: readonly string[]): Program {
  const isWrapper = (word: string): boolean => wrappers.has(nameOf(word)) || runners.has(nameOf(word))
  let [isWrapped, before] = [false, '']
  const at = words.findIndex((word) => {
    const isOption = isWrapped && /^(?:[-+]|[\d.]+[smhd]?$)/.test(word)
    const isSubcommand = (runners.has(before) || before === 'tool') && subcommands.has(word)
    const isSkipped = keywords.has(word) || isAssignment(word) || isWrapper(word) || isOption || isSubcommand
    isWrapped ||= isWrapper(word)
    if (!isOption) before = nameOf(word)
    return !isSkipped
  })
  const end = at < 0 ? words.length : at
  const front = words.slice(0, end)
  const called = [...front, ...words.slice(end, end + 1)].map(nameOf)
  const name = words[end]
  const isInterpreter = name !== undefined && interpreters.test(nameOf(name))
  const isShell = /^(?:(?:ba|da|z|k|fi)?sh|eval)$/.test(nameOf(name ?? ''))
  const given = words.slice(end + 1)
  const isBare = isInterpreter && given.every((word) => /^-\w?$/.test(word))
  const args = isBare && called.some((each) => /^(?:xargs|parallel)$/.test(each)) ? [...given, UNKNOWN] : given
  return {
    name,
    words,
    args: [...front.filter(isAssignment), ...args], // such as `PYTHONPATH=hooks`
    kind:
      name === undefined || isPackageScript(front) || [builtins, tools].some((set) => set.has(nameOf(name)))
        ? 'works'
        : 'runs',
    isShell,
    isInterpreter,
    manifests: [
      ...called.flatMap(manifestsOf),
      ...(args.includes('--run') ? ['package.json'] : []), // of Node
      ...(words.some((word) => /^(?:HOME|ZDOTDIR)=/.test(word)) ? startupFiles : []),
    ],
    viaPackage: called.some((each) => packageManagers.has(each)),
    readsInput:
      isBare ||
      (isShell &&
        args.some((word, i) => /^-\w*s$/.test(word) || (isCommandOption(args[i - 1]) && word.includes(UNKNOWN)))) ||
      (/^(?:export|declare|typeset)$/.test(name ?? '') && args.some((word) => word.startsWith(UNKNOWN))),
  }
}

function isCommandOption(word: string | undefined): boolean {
  return word !== undefined && /^-\w*c$/.test(word)
}

/** What shells and programs read from the home folder when they start. */
const startupFiles =
  '.profile .bash_profile .bash_login .bashrc .zshenv .zprofile .zshrc .zlogin .gitconfig .npmrc .vimrc'.split(' ')

/** `npm run lint src/a.ts`: the file is for the script of the package. */
function isPackageScript(front: readonly string[]): boolean {
  return (
    front.some((word) => /^(?:npm|pnpm|yarn)$/.test(nameOf(word))) &&
    front.some((word) => /^(?:run|run-script|test)$/.test(word))
  )
}

function isAssignment(word: string): boolean {
  return /^[A-Za-z_]\w*\+?=/.test(word)
}

function nameOf(word: string): string {
  return word.slice(word.lastIndexOf('/') + 1)
}

const split = (names: string): ReadonlySet<string> => new Set(names.split(' '))

const keywords = split('if then else elif do while until ! time { } ( ) esac in function')
const packageManagers = split('npm pnpm yarn bun npx bunx pnpx')
const wrappers = split(
  'env exec command builtin nohup nice ionice timeout xargs sudo doas stdbuf setsid chronic npx bunx pnpx uvx',
)
/** Programs that run another one, also after a subcommand. */
const runners = split('npm pnpm yarn bun deno uv poetry pipenv pdm hatch rye bundle mise')
const subcommands = split('run run-script exec x test task dlx tool')
const interpreters = /^(?:(?:ba|da|z|k|fi)?sh|node|python[\d.]*|perl|ruby|php|bun|deno)$/

/** Programs whose arguments are only data, and that have no configuration. */
const builtins = split(
  '[ [[ : alias basename break case cat cd chgrp chmod chown cksum cmp comm continue cp curl cut date dd df diff dirname du echo exit ' +
    'export expr false file find fmt fold for getopts grep egrep fgrep head hostname id install join jobs kill less link ln local ls ' +
    'md5sum mkdir mkfifo mktemp more mv nl notify-send od osascript paste pgrep pkill popd printf ps pushd pwd read readlink ' +
    'realpath return rev rm rmdir rg seq set sha1sum sha256sum shasum shift shuf sleep sort split stat stty sum sync tac tail tee test ' +
    'touch tput tr trap true tsort tty type ulimit umask uname unexpand uniq unlink unset wait wc wget which who whoami xxd yes',
)

/** Programs that work on the code of the project. What they are called with is not the code of the hook. */
const tools = split(
  'actionlint ava bandit biome black buf cargo clang-format clang-tidy clippy cspell docker dotnet dprint eslint eslint_d ' +
    'flake8 gh git go gofmt gofumpt goimports golangci-lint gradle hadolint isort jest jq knip ktlint lint-staged markdownlint ' +
    'markdownlint-cli2 mix mocha mvn mypy nx oxfmt oxlint phpcs phpstan phpunit playwright prettier prettierd psalm pylint pyright ' +
    'pytest rspec rubocop ruff rustfmt semgrep shellcheck shfmt sqlfluff standard stylelint stylua swiftformat swiftlint taplo ' +
    'terraform tflint tox trivy tsc turbo typos vitest vue-tsc xo yamllint yq',
)

const others: { readonly [program: string]: readonly string[] } = {
  pnpm: ['package.json'],
  npm: ['package.json', 'server.js'],
  npx: ['package.json'],
  yarn: ['package.json'],
  bun: ['package.json'],
  uv: ['pyproject.toml'],
  poetry: ['pyproject.toml'],
  hatch: ['pyproject.toml'],
  pdm: ['pyproject.toml'],
  ant: ['build.xml'],
  cmake: ['CMakeLists.txt', 'CMakePresets.json'],
  direnv: ['.envrc'],
  gradle: ['build.gradle', 'build.gradle.kts', 'settings.gradle', 'settings.gradle.kts'],
  inv: ['tasks.py'],
  invoke: ['tasks.py'],
  lein: ['project.clj'],
  meson: ['meson.build'],
  mix: ['mix.exs'],
  mvn: ['pom.xml', '.mvn'],
  nix: ['flake.nix'],
  'nix-shell': ['shell.nix', 'default.nix'],
  overcommit: ['.overcommit.yml'],
  'pre-commit': ['.pre-commit-config.yaml'],
  sbt: ['build.sbt'],
  scons: ['SConstruct'],
  zig: ['build.zig'],
}

/** The files that define what a program does, by the usual names: `Makefile`, `.npmrc`, `eslint.config.js`, `Cargo.toml`. */
function manifestsOf(name: string): readonly string[] {
  if (!/^[a-z][\w-]{2,30}$/i.test(name) || builtins.has(name)) return others[name] ?? []
  const own = [name, name[0]!.toUpperCase() + name.slice(1)].flatMap((each) =>
    [
      'file',
      ...['yml', 'yaml', 'py', 'rb', 'js', 'cjs', 'mjs', 'ts'].map((end) => `file.${end}`),
      '.toml',
      '.json',
      '.jsonc',
      '.yaml',
      '.yml',
      '.ini',
    ].map((end) => each + end),
  )
  const config = ['js', 'mjs', 'cjs', 'ts', 'mts', 'cts', 'json'].map((end) => `${name}.config.${end}`)
  const hidden = ['', '.js', '.cjs', '.mjs', '.json', '.yaml', '.yml', '.toml'].map((end) => `.${name}rc${end}`)
  return [...own, ...config, ...hidden, ...(name === 'make' ? ['GNUmakefile'] : []), ...(others[name] ?? [])]
}
