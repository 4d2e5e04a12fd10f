import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { testIf } from '../../../system/test-if.fixture.ts'
import { developerCommands } from './developer.fixture.ts'
import { changedIn, createPlace, type Place } from './effects-place.fixture.ts'
import { everyday } from './everyday.fixture.ts'
import { hostile } from './hostile.fixture.ts'
import { commandJudge } from './judge-command.ts'

// npm, make and cargo run what the project defines: that is what a rule allows. Each definition here writes the file "ran". Any other
// file, and above all MARK, which only the payload writes, is the effect of a word in the command.

const isSoak = process.env['HOOKLOOP_TEST_RUNS'] !== undefined
const lines = (text: string): readonly string[] => text.split('\n').map((line) => line.trim())

const judge = commandJudge({
  allow: lines(`npm test
    npm t
    npm run *
    npm start
    npm ls
    make
    cargo build
    cargo check
    cargo test
    cargo clippy
    echo
    tail
    head
    tee
    timeout
    env`),
})

type Program = {
  readonly commands: readonly string[]
  /** Words that change what runs, in forms that the program reads. */
  readonly dangerous: readonly string[]
  /** Words that do not. */
  readonly usual: readonly string[]
}

const programs: { readonly [name: string]: Program } = {
  npm: {
    commands: ['npm test', 'npm run build'],
    dangerous: lines(`--script-shell=./payload
      -script-shell ./payload
      ---script-shell=./payload
      --prefix=sub
      -C sub
      -userconfig=settings
      --userconfig settings
      --globalconfig=settings
      --node-options=--require=./payload
      --shell=./payload
      -c ./payload
      --call=./payload
      --workspace=../outside
      --cache=../outside/c
      --logs-dir=../outside
      --git=./payload
      --editor ./payload
      --silent --prefix sub`),
    usual: ['', '--silent', '-s', '--if-present', '-- --watch=false', '-- ./payload', '-- --script-shell=./payload'],
  },
  make: {
    commands: ['make', 'make build'],
    dangerous: lines(String.raw`SHELL=./payload
      'SHELL = ./payload'
      '.SHELLFLAGS=-c ./payload;'
      'X != ./payload'
      'X:=$(shell ./payload)'
      'V=$(shell ./payload)'
      'all:;./payload'
      --eval='$(shell ./payload)'
      --eva='$(shell ./payload)'
      -E '$(shell ./payload)'
      -f evil.mk
      -fevil.mk
      -kf evil.mk
      --file=evil.mk
      --makefile evil.mk
      -C sub
      -Csub
      --directory=sub
      --dir sub
      MAKEFLAGS=-fevil.mk
      MAKEFILES=evil.mk`),
    usual: ['', '-j2', '-k', '-n', '-s test', '--jobs=2', '--always-make', '-j 4 all', 'test V=1', '-B clean'],
  },
  cargo: {
    commands: ['cargo check', 'cargo test'],
    dangerous: lines(String.raw`--config build.rustc-wrapper=\"./payload\"
      --config settings
      --manifest-path sub/Cargo.toml
      --manifest-path=sub/Cargo.toml
      --target-dir ../outside
      --artifact-dir ../outside
      -Zunstable-options -C sub`),
    usual: ['', '--release', '--offline', '--quiet', '-v'],
  },
}

const combined = ({ commands }: Program, words: readonly string[]): readonly string[] =>
  commands.flatMap((command) => words.map((word) => `${command} ${word}`.trim()))

suite('what is allowed of a program that runs the project', () => {
  for (const [name, program] of Object.entries(programs)) {
    test(`has no word with which ${name} runs another program, or another project`, () => {
      const commands = [
        ...combined(program, program.dangerous),
        ...program.commands.flatMap((command) => [
          `PATH=.:$PATH ${command}`,
          `npm_config_script_shell=./payload ${command}`,
          `MAKEFLAGS=-fevil.mk ${command}`,
          `RUSTC_WRAPPER=./payload ${command}`,
        ]),
      ]
      const allowed = commands.filter((command) => judge(command).verdict === 'allow')
      assert.deepEqual(allowed, [])
    })

    test(`includes the usual words of ${name}`, () => {
      const asked = combined(program, program.usual).filter((command) => judge(command).verdict !== 'allow')
      assert.deepEqual(asked, [])
    })
  }

  const root = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-builds-')))
  after(() => rmSync(root, { recursive: true, force: true }))
  const place = createPlace(root, createProject)
  for (const [name, program] of Object.entries(programs)) {
    const isUsable = canRun(place, name)
    if (!isUsable) console.warn(`NOT RUN: ${name} is not installed here for a user without rights.`)
    const own = [...developerCommands, ...everyday, ...hostile].filter((each) => each.split(/\W/).includes(name))
    const allowed = [...new Set([...combined(program, [...program.usual, ...program.dangerous]), ...own])]
      .map((command) => ({ command, verdict: judge(command) }))
      .filter(({ command, verdict }) => verdict.verdict === 'allow' && !/&\s*$|\b(?:ci|install)\b/.test(command))
      .filter((_, i) => isSoak || name === 'make' || i % 5 === 0) // npm and cargo are slow

    testIf(isUsable)(`makes ${name} write only what the project defines and what the verdict names`, () => {
      assert.ok(allowed.length > 3)
      const wrong = allowed.flatMap(({ command, verdict }) => {
        const changed = changedIn(place, command)
        const named = verdict.commands.flatMap(({ writes = [] }) => writes).map((file) => join('work', file))
        const unnamed = changed.filter((file) => !named.includes(file) && !ofProject.test(file))
        if (changed.length > 0) place.reset()
        return unnamed.length === 0 ? [] : [`${command}: ${unnamed.join(', ')}`]
      })
      assert.deepEqual(wrong, [])
    })
  }
})

/** What the project defines, the output of a compiler, and the caches of the programs. */
const ofProject = /^(?:work\/(?:ran|target|Cargo\.lock)|home)(?:\/|$)/

/** Each script and target writes the file "ran". In the folder "sub" they run the payload. */
function createProject(work: string): void {
  const scriptsOf = (command: string) =>
    JSON.stringify({
      name: 'a',
      version: '1.0.0',
      scripts: Object.fromEntries(['test', 'start', 'build', 'lint', 'test:unit'].map((name) => [name, command])),
    })
  const targets = (command: string) => `.PHONY: all test build clean\nall test build clean:\n\t@${command}\n`
  const manifest = '[package]\nname = "a"\nversion = "0.1.0"\nedition = "2021"\n'
  mkdirSync(join(work, 'sub/src'), { recursive: true })
  const files = {
    'package.json': scriptsOf('echo ran >> ran'),
    'sub/package.json': scriptsOf('../payload'),
    Makefile: targets('echo ran >> ran'),
    'sub/Makefile': targets('../payload'),
    'evil.mk': targets('./payload'),
    'Cargo.toml': manifest,
    'src/main.rs': 'fn main() {}\n',
    'sub/Cargo.toml': manifest,
    'sub/src/main.rs': 'fn main() {}\n',
    'sub/build.rs': 'fn main() { std::process::Command::new("../payload").status().unwrap(); }\n',
    settings: 'script-shell=./payload\n',
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(work, name), text)
}

/** Whether a program is installed where a user without rights finds it. */
function canRun(place: Place, program: string): boolean {
  place.run(`${program} --version > installed`)
  const output = place.files().get('work/installed') ?? ''
  place.reset()
  return output !== ''
}
