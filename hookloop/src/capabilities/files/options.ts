import { invalidOption, readOptions } from '../../values/check-options.ts'
import { runLater } from '../../system/files/run-later.ts'

/** Options of `files`. */
export type FilesOptions = {
  /** The folder to work in. Required without `roots`. */
  readonly root?: string
  /** Several folders, instead of `root`. Relative paths are relative to the first one. Default none. */
  readonly roots?: readonly string[]
  /** Whether there are tools that change files. Default true. */
  readonly write?: boolean
  /** Paths that may be read but not written, in addition to the default: git, shells, editors, agents and package managers. */
  readonly protect?: readonly string[]
  /** Paths that need approval before they are written, in addition to the default: `package.json` and the files of CI services. */
  readonly ask?: readonly string[]
  /** Exceptions from `protect`, `ask` and the defaults of `hide`, in addition to the default: `.env.example`, `.env.sample`, `.env.template`. */
  readonly allow?: readonly string[]
  /** Paths that do not exist for the model, in addition to the default: keys and credentials such as `.env*` and `*.pem`. */
  readonly hide?: readonly string[]
  /** Names of folders that listings and searches do not enter, unless they start there. Default `.git` and `node_modules`. */
  readonly skip?: readonly string[]
  /** Whether a file must have been read before it is edited. Default true. */
  readonly readFirst?: boolean
  /** How many lines `read_file` shows, if the model does not set a limit. Default 200. */
  readonly maxLines?: number
  /** How many bytes `read_file` shows at most. Default 32,768. */
  readonly maxReadBytes?: number
  /** How many bytes of one line `read_file` shows. Default 4,096. */
  readonly maxLineBytes?: number
  /** The largest file that is written, edited or searched. Default 10,485,760. */
  readonly maxFileBytes?: number
  /** How many bytes a search reads in total. Default 268,435,456. */
  readonly maxSearchBytes?: number
  /** How many entries `list_dir` shows. Default 200. */
  readonly maxEntries?: number
  /** How many lines `search_files` shows. Default 100. */
  readonly maxMatches?: number
  /** How deep listings and searches go. Default 32. */
  readonly maxDepth?: number
  /** How long reading, listing or searching may take. Default 10,000. */
  readonly timeoutMs?: number
}

/** Keys and credentials. */
const secretPaths =
  '.env* .envrc *.pem *.key *.p12 *.pfx *.jks *.keystore id_rsa* id_dsa* id_ecdsa* id_ed25519* .ssh .gnupg .aws .azure .kube .netrc .npmrc .pypirc .git-credentials ' +
  '.pgpass .my.cnf .mylogin.cnf .vault-token .htpasswd .terraformrc **/.docker/config.json **/.config/gcloud **/.config/gh **/.terraform.d/credentials.tfrc.json'

/** In addition to `runLater`: repositories, and more that a command may write but a model should not. */
const protectedPaths =
  '.git .yarn .yarnrc* .pnpmfile.* lefthook.* .lefthook.* .lintstagedrc* **/node_modules/.bin ' +
  'lefthook-local.* .lefthook-local.* .lefthook .lefthook-local .pre-commit-config.* .simple-git-hooks.* simple-git-hooks.* .overcommit.yml .bundle .mvn .pnp.* **/.venv/bin **/venv/bin ' +
  '.gemini .codex .windsurf .zed .aider.conf.yml .huskyrc* .direnv .bazelrc .gradle bunfig.toml .bunfig.toml .pip pip.conf .gemrc .nvimrc .nvim.lua .vim .emacs .emacs.d .dir-locals.el ' +
  '.inputrc .tmux.conf .screenrc .cshrc .tcshrc .kshrc .config/fish .irbrc .pryrc .pdbrc .Rprofile .psqlrc .sqliterc .ghci .curlrc .wgetrc .hg .hgrc .mise .config/mise mise.local.toml sitecustomize.py usercustomize.py ' +
  '.devcontainer.json .gitpod.yml .replit .codesandbox .stackblitzrc .fleet .theia .lvimrc .local.vimrc .vimrc.local .git-hooks .jj .sl .svn .bzr .bazeliskrc .buckconfig tools/bazel .jvmopts .sbtopts .sbtrc .terraform **/site-packages/*.pth ' +
  '.continue .opencode opencode.json opencode.jsonc .amp .kiro .roo .goose .qwen .factory .iex.exs .ocamlinit .utoprc .erlang .octaverc .ipython .jupyter .julia .lein .pythonrc .pythonrc.py .Renviron ' +
  '.xinitrc .xprofile .xsession .xsessionrc .xbindkeysrc .pam_environment .login .logout .direnvrc .lessfilter .mailcap .config/git .config/nvim .config/direnv .config/husky .config/systemd .config/autostart .config/environment.d .config/nushell .config/zsh'

/** What a package manager runs when it installs, and what a server runs with the secrets of the project. */
const askedPaths =
  'package.json .github .gitlab-ci.yml .circleci Jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml .travis.yml .drone.yml .woodpecker .woodpecker.yml ' +
  '.buildkite .forgejo .gitea .cirrus.yml .semaphore .teamcity appveyor.yml .appveyor.yml'

export const filesDefaults = Object.freeze({
  root: undefined,
  roots: undefined,
  write: true,
  protect: Object.freeze([...runLater, ...protectedPaths.split(' ')]),
  ask: Object.freeze(askedPaths.split(' ')),
  allow: Object.freeze(['.env.example', '.env.sample', '.env.template'] as readonly string[]),
  hide: Object.freeze(secretPaths.split(' ')),
  skip: Object.freeze(['.git', 'node_modules'] as readonly string[]),
  readFirst: true,
  maxLines: 200,
  maxReadBytes: 32_768,
  maxLineBytes: 4_096,
  maxFileBytes: 10_485_760,
  maxSearchBytes: 268_435_456,
  maxEntries: 200,
  maxMatches: 100,
  maxDepth: 32,
  timeoutMs: 10_000,
}) satisfies { readonly [K in keyof FilesOptions]: FilesOptions[K] | undefined }

/** Checked options with the defaults filled in. */
export type FilesSettings = Required<Omit<FilesOptions, 'root' | 'roots'>> & { readonly roots: readonly string[] }

export function readFilesOptions(options: FilesOptions): FilesSettings {
  const { root, roots, ...settings } = readOptions('files', options ?? {}, filesDefaults)
  if ((root === undefined) === (roots === undefined)) {
    throw invalidOption('files', 'give either "root" or "roots"', root)
  }
  const { maxLineBytes, maxReadBytes } = settings
  if (maxLineBytes > maxReadBytes) {
    throw invalidOption('files', '"maxLineBytes" must not be more than "maxReadBytes"', maxLineBytes)
  }
  return { ...settings, roots: roots ?? [root!] }
}
