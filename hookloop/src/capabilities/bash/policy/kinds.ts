import { matchesWildcard } from '../../../hooks/patterns.ts'
import { isHarmlessAwk, isHarmlessSed } from './scripts.ts'

/**
 * What a value or an operand may be. A grammar names one of these, or lists the values itself. Everything else is not known to be
 * harmless.
 */
export const kinds: { readonly [name: string]: (value: string) => boolean } = {
  any: () => true,
  /** Also a word that begins with a dash. */
  all: () => true,
  /** A path as it is, not an expansion. */
  path: () => true,
  /** A value that is the next word: attached to the option, its letters would be options. */
  next: () => true,
  number: (value) => /^[-+]?[\d.]+[a-zA-Z%]*$/.test(value),
  count: (value) => /^\d+$/.test(value),
  /** A path below the working directory, or a pattern of paths. The first character rules out options and response files. */
  below: (value) =>
    /^(?:\.\/|\.$|[\w*[{(])/.test(value) &&
    !/(?:^|\/)(?:\.\.(?:\/|$)|\.{1,2}[*?[])/.test(value) && // a pattern may match `..`
    !/^\w+:(?!:)/.test(value),
  /** The same without hidden files and installed packages, which other programs run or read as their settings. */
  work: (value) =>
    (kinds['below']!(value) && !/(?:^|\/)(?:\.[^./]|node_modules(?:\/|$))/.test(value) && !mayBeInstalled(value)) ||
    /^(?:[\w-]+\/)*\.(?:env(?:\.\w+)?|gitignore|gitkeep)$/.test(value),
  /** A folder in the working directory, also a hidden one. */
  folder: (value) => !/^[-/~]|(?:^|\/)\.\.(?:\/|$)|(?:^|\/)\.git(?:\/|$)/.test(value),
  /** Packages of Go without a version, which would be downloaded. */
  unversioned: (value) => kinds['below']!(value) && !value.includes('@'),
  data: (value) => value === '/dev/null' || isDataFile(value),
  /** A file for tar, where a colon is a host. */
  local: (value) => !value.includes(':'),
  /** A remote of git without the name of a helper program. */
  remote: (value) => !value.includes('::'),
  http: (value) => /^(?:https?:\/\/|(?!\w+:\/\/))[\w[][\w.:[\]-]*(?:[/?][^\s{}]*)?$/.test(value),
  /** Not a file that is read in place of the value. */
  text: (value) => !value.startsWith('@') && !value.includes('%output{'),
  /** Checking a signature runs a program. */
  format: (value) => !/%[-+ ]?G|signature/.test(value),
  order: (value) => !/signature/.test(value),
  target: (value) => /^(?:\w[\w./:@%+-]*|(?:V|VERBOSE|DEBUG|CI)=\w*)$/.test(value),
  /** A package of a registry: not a path, an address or an archive, which would run its own scripts. */
  package: (value) =>
    /^(?:@[\w.-]+\/)?\w[\w.-]*(?:\[[\w,.-]+\])?(?:(?:@|[=~<>!]=)[\w^~*][\w.*-]*)?$/.test(value) &&
    !/\.(?:tar(?:\.\w+)?|t[gbxl]z\d?|gz|bz2|xz|zip|whl|egg)(?:\[|$)/i.test(value),
  source: (value) => /^(?:[\w-]+\/)*[\w.-]+\.(?:c|cc|cpp|cxx|h|hpp|o|s)$/.test(value) && !value.startsWith('-'),
  /** A program that a compiler writes: not a script or a file that other programs read, such as `Makefile`. */
  binary: (value) =>
    /^(?:[\w-]+\/)*\w[\w-]*(?:\.(?:o|so|exe|out))?$/.test(value) &&
    !/(?:^|\/)(?:\w*file|gradlew|mvnw|configure|manage|node_modules\/.*|v?env\/.*)$/i.test(value),
  output: (value) =>
    /^(?:json|yaml|name|wide|(?:jsonpath|jsonpath-as-json|custom-columns|go-template)=.*)$/.test(value),
  /** What kubectl may show: a secret has credentials. */
  resource: (value) => !/secret/i.test(value),
  /** Not a repository of another host, which gets the token of GitHub Enterprise. */
  github: (value) =>
    !/^(?!https:\/\/github\.com\/)[\w+.-]+:\/\/|^[\w.-]+@|^(?!github\.com\/)[\w-]*[.:][\w.:-]*\/[^/\s]+\/|^localhost\b/i.test(
      value,
    ),
  /** A setting of git that only changes what it prints. */
  setting: (value) =>
    /^(?:color\.[\w.]+=\w+|core\.(?:quotepath|abbrev)=\w+|core\.pager=cat|advice\.\w+=\w+|log\.(?:date|decorate|follow|abbrevCommit|showRoot|mailmap)=\w+|user\.(?:name|email)=[\w .@+-]*)$/i.test(
      value,
    ),
  /** The name of a setting, not a subcommand. */
  key: (value) => /^[\w-]+\.[\w.-]+$/.test(value),
  /** A workspace: its name, or a path below the working directory, with the dots that add what depends on it. */
  project: (value) =>
    /^(?:\.\.\.)?\^?!?(?:(?:@[\w.*-]+\/)?[\w*][\w.*-]*|\.(?:\/[\w./*-]*)?|\{[\w./*-]+\})(?:\^?\.\.\.)?$/.test(value) &&
    !/(?:^|\/)\.\.(?:\/|$)/.test(value),
  /** Options of the shell that end a script early. */
  shellopt: (value) => /^(?:[-+](?:[eu]{1,2}o?|o)|pipefail|errexit|nounset)$/.test(value),
  own: isOwnVariable,
  /** A variable that only changes how programs print or start. Other names may be functions. */
  removable: (value) => safeVariables.has(value) || /^(?:NODE_OPTIONS|PYTHONPATH)$/.test(value),
  exported: (value) =>
    isSafeAssignment(value.split('=')[0]!, value.slice(value.indexOf('=') + 1)) && value.includes('='),
  /** The usual name of a script: another word may be a file, a program, or a subcommand that installs or runs one. */
  script: (value) => SCRIPT.test(value),
  endpoint: (value) => /^\/?\w[\w./?=&{}%-]*$/.test(value),
  /** Levels of lints. Other options for the compiler write files or load libraries. */
  lint: (value) => /^(?:-[ADFW][\w:-]*|\w[\w:-]*)$/.test(value),
  /** Options for the tests of cargo. Another one writes a file. */
  libtest: (value) =>
    /^(?:[^-].*|-q|--(?:nocapture|no-capture|ignored|include-ignored|exact|show-output|list|quiet|skip(?:=.*)?|test-threads(?:=\d+)?|format=(?:pretty|terse)))$/.test(
      value,
    ),
  rustfmt: (value) => /^(?:--check|-v|--verbose|-l)$/.test(value),
  dockerfile: (value) => kinds['below']!(value) && /(?:^|\/)(?:Dockerfile[\w.-]*|[\w.-]+\.Dockerfile)$/.test(value),
  compose: (value) => kinds['below']!(value) && /(?:^|\/)(?:docker-)?compose[\w.-]*\.ya?ml$/.test(value),
  plus: (value) => value.startsWith('+'),
  /** Letters of `ps` without a dash. The letter `e` would show the environment of processes. */
  ps: (value) => /^(?:[a-df-zA-Z]+|\d+)$/.test(value),
  columns: (value) => !/env/i.test(value),
  tar: (value) => /^[tvzjJ]*f?$/.test(value),
  test: (value) => value !== '-v' && value !== '-R',
  sed: isHarmlessSed,
  awk: isHarmlessAwk,
  jq: (program) => !/(?<![.\w"$])(?:env|import|include|modulemeta)\b|(?<![.\w"])ENV\b/.test(program),
  yq: (program) =>
    /^(?!.*\/\/)[\w./-]+\.(?:ya?ml|json|xml|toml|csv|tsv|properties)$/.test(program) ||
    !/(?<![.\w"])(?:strenv|env|import|include|modulemeta|system|exec|ENV)/.test(program),
  printf: (format) => !STORES.test(format),
  /** The name of a program, file or package that is run: only a rule can allow it. */
  run: () => false,
}

/** Whether a pattern may match installed packages. A star at the end is a pattern for other files. */
function mayBeInstalled(path: string): boolean {
  const names = path.replace(/^(?:\.\/)+/, '').split('/')
  return names.some((name, index) => {
    const isAny = name === '*' && index === names.length - 1
    return !isAny && /[*?[]/.test(name) && matchesWildcard('node_modules', name.replace(/\[[^\]]*\]/g, '?'), '?')
  })
}

const SCRIPT =
  /^(?!(?:coverage|docs)$)(?:[\w-]+:)?(?:run|test|tests|build|dev|start|lint|format|check|type-?check|types|e2e|ci|clean|compile|coverage|unit|integration|docs|preview|generate|codegen)(?::[\w:-]+)?$/

/** The conversion that stores the number of characters written. */
const STORES = /%[-+ #0-9.*']*[hlLjzt]*n/

/** Names of files that no program runs or reads as its settings. A redirection may write them below the working directory. */
export function isDataFile(path: string): boolean {
  return DATA_FILE.test(path) && !READ_BY_PROGRAMS.test(path)
}

const FOLDERS = String.raw`(?:\.\/)?(?:[A-Za-z0-9_][\w-]*(?:\.[\w-]+)*\/)*`
const BY_EXTENSION = String.raw`[A-Za-z0-9_][\w.-]*\.(?:log|txt|csv|tsv|diff|patch|tmp|out|err)`
/** Files with these extensions are often settings, so their names must say that they are not. */
const RESULTS = 'out|output|results?|report|response|dump|audit|outdated|deps|stats|summary|before|after|notes|todo'
const BY_NAME = String.raw`(?:[A-Za-z0-9_][\w.-]*[-_])?(?:${RESULTS})\.(?:json|xml|html|md|ya?ml)`
const DATA_FILE = new RegExp(`^${FOLDERS}(?:${BY_EXTENSION}|${BY_NAME})$`)
const READ_BY_PROGRAMS =
  /(?:^|\/)(?:a\.out|cmakelists.*|meson.*|.*requirements.*|.*constraints.*|modules\.txt|entry_points\.txt|conanfile\.txt)$|(?:^|\/)(?:node_modules|patches)\//i

/** Names that no program reads from its environment. */
export function isOwnVariable(name: string): boolean {
  return (
    (/^(?:[a-z][a-z0-9]*(?:_[a-z0-9]+)*|[A-Z])$/.test(name) && !/^npm_|_proxy$/.test(name)) || ownVariables.has(name)
  )
}

const ownVariables: ReadonlySet<string> = new Set(
  `FILE FILES DIR DIRS NAME NAMES VERSION BRANCH COUNT TOTAL RESULT RESULTS OUTPUT OUT STATUS START END URL TAG COMMIT SHA HASH BASE SRC DEST
  PATTERN KEY VALUE LINE DATE SIZE PKG PACKAGE MODULE FOUND LIST ITEM MSG MESSAGE TEXT INPUT NUM MAX MIN TARGET TESTS POD CONTAINER SERVICE
  REPO ID PID SERVER_PID EXIT_CODE FILE_COUNT CURRENT_BRANCH BASE_BRANCH`.split(/\s+/),
)

/** Whether a variable before a command changes only how it prints, or a mode that projects define. */
export function isSafeAssignment(name: string, value: string): boolean {
  if (/^(?:GIT_|MAN)?PAGER$/.test(name)) return value === 'cat' || value === ''
  return safeVariables.has(name) && /^(?!.*\.\.)(?:[\w.,*+:][\w.,*+:/@-]*)?$/.test(value)
}

const safeVariables: ReadonlySet<string> = new Set(
  `CI NODE_ENV FORCE_COLOR NO_COLOR CLICOLOR DEBUG VERBOSE LOG_LEVEL PORT TZ LANG LC_ALL LC_COLLATE LC_CTYPE COLUMNS
  RUST_BACKTRACE RUST_LOG GOOS GOARCH CGO_ENABLED PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE NODE_NO_WARNINGS`.split(
    /\s+/,
  ),
)
