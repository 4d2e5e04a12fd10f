/** How a program that runs another command reads its own arguments. */
export type Wrapper = {
  /** Letters of options that take a value. */
  readonly valued?: string
  /** Letters of options without a value. */
  readonly flags?: string
  /** Long options that take a value as the next word. */
  readonly long?: readonly string[]
  /** Long options without a value. */
  readonly longFlags?: readonly string[]
  /** How many words are between the options and the command. */
  readonly operands?: number
  /** Whether variables may be set before the command. */
  readonly assigns?: true
  /** With no options but these letters it is as safe as the command it runs. */
  readonly plain?: string
  /** Long options with which it is as safe as the command it runs. */
  readonly plainLong?: readonly string[]
  /** Whether it passes the words to a shell, which parses them again. */
  readonly shell?: true
  /** Options whose value is shell code. */
  readonly text?: readonly string[]
}

const text = ['-c', '--command']

/** Programs that run another command, by their first words. */
export const wrappers: { readonly [words: string]: Wrapper } = {
  timeout: {
    valued: 'ks',
    flags: 'vfp',
    long: ['--kill-after', '--signal'],
    longFlags: ['--foreground', '--preserve-status', '--verbose'],
    operands: 1,
    plain: 'vksfp',
    plainLong: ['--kill-after', '--signal', '--foreground', '--preserve-status', '--verbose'],
  },
  nice: { valued: 'n', flags: '0123456789', long: ['--adjustment'], plain: 'n0123456789', plainLong: ['--adjustment'] },
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
  exec: { valued: 'a', flags: 'cl' },
  setsid: { flags: 'cfw' },
  chrt: { valued: 'TPD', flags: 'abdfiormpv', operands: 1 },
  taskset: { flags: 'acp', operands: 1 },
  choom: { valued: 'np' },
  logsave: { flags: 'asv', operands: 1 },
  'ssh-agent': { valued: 'atEOP', flags: 'csDdk' },
  sshpass: { valued: 'pfdP', flags: 'ehvV' },
  'systemd-cat': { valued: 'tp' },
  'aa-exec': { valued: 'pn', flags: 'div' },
  chpst: { valued: 'uUbe/nmdofpcrt', flags: '012vP' },
  softlimit: { valued: 'acdflmoprst' },
  setlock: { flags: 'nNxX', operands: 1 },
  'dumb-init': { flags: 'cv' },
  tini: { valued: 'pe', flags: 'gsvw' },
  multitime: { valued: 'Iifnors', flags: 'lqv' },
  dtach: { valued: 'Aacnp' },
  chronic: { flags: 've' },
  ifne: { flags: 'n' },
  cgexec: { valued: 'g' },
  'sandbox-exec': { valued: 'pnfD' },
  sudo: {
    valued: 'CDghpRrtTuU',
    flags: 'AbBEeHiKklnPSsVv',
    long: ['--user', '--group', '--host', '--prompt', '--chdir', '--chroot', '--close-from', '--command-timeout'],
    assigns: true,
  },
  doas: { valued: 'Cu', flags: 'nsL', assigns: true },
  pkexec: { long: ['--user'] },
  su: { text, operands: 1 },
  runuser: { text, valued: 'ugG' },
  sg: { text, operands: 1 },
  unshare: { valued: 'SGRw', flags: 'imnpuUCTfrc' },
  nsenter: { valued: 'tSGrw', flags: 'amuinpUCT' },
  proxychains: { flags: 'q' },
  proxychains4: { flags: 'q' },
  strace: { valued: 'abeEIoOpPsSuUX', flags: 'AcCdDfFhiknqrtTvVwxyYzZ' },
  ltrace: { valued: 'aAeFlnopsuwx', flags: 'bcCfhiLrStTV' },
  'xvfb-run': { valued: 'efnpsw', flags: 'al' },
  caffeinate: { valued: 'tw', flags: 'disum' },
  'cross-env': { assigns: true },
  dotenv: { valued: 'evp' },
  flock: { valued: 'wE', flags: 'sxeunoFv', operands: 1, text },
  watch: { valued: 'nq', flags: 'bcdegtpxw', shell: true },
  entr: { flags: 'acdnprsxz', shell: true },
  nodemon: { text: ['-x', '--exec'] },
  ssh: { valued: 'BbcDEeFIiJLlmOopQRSWw', flags: '46AaCfGgKkMNnqsTtVvXxYy', operands: 1, shell: true },
  script: { text, valued: 'EIoOTBm', flags: 'aefqt' },
  screen: { valued: 'cehpStTS', flags: 'aADdmRrxUwi' },
  tmux: { operands: 1, shell: true },
  xargs: {
    valued: 'EILPadns',
    flags: '0rtpxoile',
    long: ['--arg-file', '--delimiter', '--max-args', '--max-procs', '--max-chars', '--max-lines', '--replace'],
  },
  npx: { valued: 'pc', flags: 'yq', long: ['--package', '--call'], text: ['-c', '--call'] },
  'npm exec': { valued: 'pcw', flags: 'y', text: ['-c', '--call'] },
  'npm x': { valued: 'pcw', flags: 'y', text: ['-c', '--call'] },
  'pnpm exec': { flags: 'cr', shell: true },
  'conda run': { valued: 'np' },
  'cmake -E env': { assigns: true },
  'nix-shell': { text: ['--run', '--command'] },
  ...each(
    `builtin, numactl, prlimit, linux32, linux64, i386, i686, x86_64, uname26, arch, systemd-inhibit, catchsegv,
    eatmydata, heaptrack, daemonize, trickle, proot, xcrun, setpriv, capsh, bwrap, firejail, fakeroot, torify,
    torsocks, valgrind, gdb, systemd-run, dbus-run-session, unbuffer, rlwrap, cpulimit, busybox, toybox, pnpx,
    bunx, uvx, pnpm dlx, yarn dlx, bun x, uv run, poetry run, pipenv run, hatch run, pipx run, opam exec,
    stack exec, cabal exec, lerna exec, nx exec, op run, doppler run, infisical run, nvm exec, fnm exec, mise x,
    rvm do, bundle exec, rbenv exec, pyenv exec, mise exec, asdf exec, volta run, git bisect run`,
    {},
  ),
  ...each(
    `setarch, runcon, envdir, setuidgid, faketime, gosu, su-exec, chroot, perf, aws-vault exec, direnv exec,
    docker run, docker exec, docker container run, docker container exec, docker compose run, docker compose exec,
    nerdctl run, nerdctl exec, oc exec, podman run, podman exec, kubectl exec, ip netns exec, go run`,
    { operands: 1 },
  ),
  ...each(`hyperfine, concurrently, pee, sem, parallel, yarn exec, git submodule foreach`, { shell: true }),
}

function each(names: string, wrapper: Wrapper): { readonly [words: string]: Wrapper } {
  return Object.fromEntries(names.split(/,\s+/).map((name) => [name, wrapper]))
}

/** Shells: the text after -c is parsed as a command. */
export const shells: ReadonlySet<string> = new Set(
  'sh bash dash ash zsh ksh mksh rbash yash fish csh tcsh pwsh powershell'.split(' '),
)
