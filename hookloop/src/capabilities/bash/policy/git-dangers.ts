import { optionsOf, shown, type Danger } from './options.ts'

/** The words of a git command that a rule must name explicitly. */
export function gitDangers(argv: readonly string[]): readonly Danger[] {
  const [, first = '', second = ''] = argv
  if (argv.length === 1 || INFORMATION.has(first)) return []
  if (first.startsWith('-')) return [{ index: 1, why: `${shown(first)} changes how git runs` }]
  if (!ordinary.has(first)) return [{ index: 1, why: `git ${shown(first)} may run another program` }]
  const strict = Object.hasOwn(subcommands, first) ? subcommands[first]!(argv) : []
  const words = argv.flatMap((word, index) => {
    if (/^[a-z0-9+.-]+::/i.test(word)) return [{ index, why: `${shown(word)} names a program for the transfer` }]
    if (index > 1 && word === '--help') return [{ index, why: 'a setting may choose the help viewer' }]
    return word.includes('%G') ? [{ index, why: 'checking a signature runs a program' }] : []
  })
  return [...optionsOf({ long: unsafe }, withoutHarmless(argv)), ...words, ...strict, ...bySecondWord(first, second)]
}

/** Options before the subcommand that are ignored when rules are matched. */
export const harmlessGitOptions: ReadonlySet<string> = new Set(['--no-pager', '-P', '--no-optional-locks'])

const INFORMATION: ReadonlySet<string> = new Set(['--version', '--help', '-v', '-h'])

const ordinary: ReadonlySet<string> = new Set(
  `add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore checkout cherry cherry-pick
  clean clone commit commit-tree config count-objects describe diff diff-files diff-index diff-tree fetch for-each-ref
  format-patch fsck gc grep hash-object init log ls-files ls-remote ls-tree merge merge-base merge-tree mv name-rev
  notes pull push range-diff read-tree rebase reflog remote reset restore rev-list rev-parse revert rm shortlog show
  show-branch show-ref sparse-checkout stash status submodule switch symbolic-ref tag update-index update-ref
  verify-commit verify-tag version whatchanged worktree write-tree`.split(/\s+/),
)

/** Long options, also abbreviated. */
const unsafe: readonly string[] =
  `output output-directory ext-diff textconv filters open-files-in-pager upload-pack receive-pack exec exec-path
  extcmd config config-env paginate git-dir work-tree template show-signature gpg-sign edit-description submodule
  ignore-submodules`.split(/\s+/)

/** Safe options that are also abbreviations of unsafe ones. */
const harmless: ReadonlySet<string> = new Set(['--text', '--filter'])

/** Options that keep git out of submodules, which have their own settings, are safe. */
function withoutHarmless(argv: readonly string[]): readonly string[] {
  const isHarmless = (word: string): boolean =>
    harmless.has(word.split('=')[0]!) || /^--ignore-submodules(?:=all)?$|^--submodule=short$/.test(word)
  return argv.map((word) => (isHarmless(word) ? '' : word))
}

type Check = (argv: readonly string[]) => readonly Danger[]

const orderFiles: Check = (argv) =>
  argv.flatMap((word, index) =>
    index > 1 && /^-(?:O|C|c$)/.test(word) ? [{ index, why: `${shown(word)} must be named by the rule` }] : [],
  )

const subcommands: { readonly [name: string]: Check } = {
  log: orderFiles,
  diff: orderFiles,
  show: orderFiles,
  status: orderFiles,
  grep: (argv) => optionsOf({ letters: 'O', valued: 'efABCm' }, argv),
  'format-patch': (argv) => optionsOf({ letters: 'o' }, argv),
  commit: (argv) => optionsOf({ letters: 'S', valued: 'mFCct' }, argv),
  archive: (argv) => optionsOf({ letters: 'o' }, argv),
  clone: (argv) => optionsOf({ letters: 'uc' }, argv),
  rebase: (argv) => optionsOf({ letters: 'x' }, argv),
  branch: (argv) => optionsOf({ letters: 'dDmMcCf', long: ['delete', 'move', 'copy', 'force'] }, argv),
  tag: (argv) => optionsOf({ letters: 'dfsu', long: ['delete', 'force', 'sign', 'local-user'] }, argv),
}

const readingWords: { readonly [name: string]: readonly string[] } = {
  config: ['--get', '--get-all', '--get-regexp', '--get-urlmatch', '--list', '-l', 'get', 'list'],
  remote: ['', '-v', '--verbose', 'show', 'get-url'],
  stash: ['', 'list', 'show', 'push', 'pop', 'apply', 'save', '-u', '-m', '-k'],
  reflog: ['', 'show', 'exists', 'HEAD'],
  bundle: ['verify', 'list-heads'],
  bisect: ['log', 'view', 'start', 'good', 'bad', 'reset', 'skip'],
  submodule: ['', 'status', 'summary', 'init', 'update'],
}

/** Subcommands with their own subcommands: those that only read, or do what the first word says, are safe. */
function bySecondWord(first: string, second: string): readonly Danger[] {
  const known = Object.hasOwn(readingWords, first) ? readingWords[first] : undefined
  const isCovered = known === undefined || known.includes(second) || /^-\d+$/.test(second)
  return isCovered ? [] : [{ index: 2, why: `git ${first} ${shown(second)} changes settings or runs commands` }]
}
