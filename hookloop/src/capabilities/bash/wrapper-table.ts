/** How a program that runs another one reads its own arguments. */
export type Wrapper = {
  /** Letters of options that take a value. */
  readonly valued?: string
  /** Letters of options that take none. */
  readonly flags?: string
  /** Long options that take a value as the next word. */
  readonly long?: readonly string[]
  /** How many words stand between the options and the command. */
  readonly operands?: number
  /** Whether variables may be set before the command. */
  readonly assigns?: true
  /** Whether it is as harmless as what it runs, when it has no options but these letters. */
  readonly plain?: string
  /** Whether it hands the words to a shell, so that they are read once more. */
  readonly shell?: true
  /** Options whose value is a text for a shell. */
  readonly text?: readonly string[]
}

const text = ['-c', '--command']

/** Programs that run another one, by the words that begin the command. */
export const wrappers: { readonly [words: string]: Wrapper } = {
  timeout: { valued: 'ks', flags: 'vfp', long: ['--kill-after', '--signal'], operands: 1, plain: 'vksfp' },
  nice: { valued: 'n', flags: '0123456789', long: ['--adjustment'], plain: 'n0123456789' },
  nohup: { plain: '' },
  ionice: { valued: 'cnpPu', flags: 't', plain: 'cnt' },
  stdbuf: { valued: 'ioe', long: ['--input', '--output', '--error'], plain: 'ioe' },
  time: { valued: 'fo', flags: 'apqv', long: ['--format', '--output'], plain: 'pv' },
  command: { flags: 'pvV', plain: 'p' },
  env: {
    valued: 'uCS',
    flags: 'i0v',
    long: ['--unset', '--chdir', '--split-string'],
    text: ['-S', '--split-string'],
    assigns: true,
    plain: '',
  },
  builtin: {},
  exec: { valued: 'a', flags: 'cl' },
  setsid: { flags: 'cfw' },
  chrt: { valued: 'TPD', flags: 'abdfiormpv', operands: 1 },
  taskset: { flags: 'acp', operands: 1 },
  numactl: {},
  prlimit: {},
  setarch: { operands: 1 },
  setpriv: {},
  capsh: {},
  sudo: { valued: 'CDghpRrtTuU', flags: 'AbBEeHiKklnPSsVv', assigns: true },
  doas: { valued: 'Cu', flags: 'nsL', assigns: true },
  pkexec: { long: ['--user'] },
  gosu: { operands: 1 },
  'su-exec': { operands: 1 },
  su: { text, operands: 1 },
  runuser: { text, valued: 'ugG' },
  sg: { text, operands: 1 },
  chroot: { operands: 1 },
  unshare: { valued: 'SGRw', flags: 'imnpuUCTfrc' },
  nsenter: { valued: 'tSGrw', flags: 'amuinpUCT' },
  bwrap: {},
  firejail: {},
  fakeroot: {},
  proxychains: { flags: 'q' },
  proxychains4: { flags: 'q' },
  torify: {},
  torsocks: {},
  strace: { valued: 'abeEIoOpPsSuUX', flags: 'AcCdDfFhiknqrtTvVwxyYzZ' },
  ltrace: { valued: 'aAeFlnopsuwx', flags: 'bcCfhiLrStTV' },
  valgrind: {},
  perf: { operands: 1 },
  gdb: {},
  'systemd-run': {},
  'dbus-run-session': {},
  'xvfb-run': { valued: 'efnpsw', flags: 'al' },
  unbuffer: {},
  rlwrap: {},
  caffeinate: { valued: 'tw', flags: 'disum' },
  cpulimit: {},
  'cross-env': { assigns: true },
  dotenv: { valued: 'evp' },
  flock: { valued: 'wE', flags: 'sxeunoFv', operands: 1, text },
  watch: { valued: 'nq', flags: 'bcdegtpxw', shell: true },
  entr: { flags: 'acdnprsxz', shell: true },
  hyperfine: { shell: true },
  parallel: { shell: true },
  ssh: { valued: 'BbcDEeFIiJLlmOopQRSWw', flags: '46AaCfGgKkMNnqsTtVvXxYy', operands: 1, shell: true },
  script: { text, valued: 'EIoOTBm', flags: 'aefqt' },
  screen: { valued: 'cehpStTS', flags: 'aADdmRrxUwi' },
  tmux: { operands: 1, shell: true },
  xargs: {
    valued: 'EILPadns',
    flags: '0rtpxoile',
    long: ['--arg-file', '--delimiter', '--max-args', '--max-procs', '--max-chars', '--max-lines', '--replace'],
  },
  busybox: {},
  toybox: {},
  npx: { valued: 'pc', flags: 'yq', long: ['--package', '--call'], text: ['-c', '--call'] },
  pnpx: {},
  bunx: {},
  uvx: {},
  'npm exec': { valued: 'pcw', flags: 'y', text: ['-c', '--call'] },
  'npm x': { valued: 'pcw', flags: 'y', text: ['-c', '--call'] },
  'pnpm exec': { flags: 'cr', shell: true },
  'pnpm dlx': {},
  'yarn exec': { shell: true },
  'yarn dlx': {},
  'bun x': {},
  'uv run': {},
  'poetry run': {},
  'pipenv run': {},
  'hatch run': {},
  'conda run': { valued: 'np' },
  'bundle exec': {},
  'rbenv exec': {},
  'pyenv exec': {},
  'mise exec': {},
  'asdf exec': {},
  'volta run': {},
  'direnv exec': { operands: 1 },
  'docker run': { operands: 1 },
  'docker exec': { operands: 1 },
  'podman run': { operands: 1 },
  'podman exec': { operands: 1 },
  'kubectl exec': { operands: 1 },
  'git bisect run': {},
  'git submodule foreach': { shell: true },
  'nix-shell': { text: ['--run', '--command'] },
  'ip netns exec': { operands: 1 },
  'go run': { operands: 1 },
}

/** Shells: what they are given with -c is read as a command of its own. */
export const shells: ReadonlySet<string> = new Set(
  'sh bash dash ash zsh ksh mksh rbash yash fish csh tcsh pwsh powershell'.split(' '),
)
