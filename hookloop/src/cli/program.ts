import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Command, Option } from 'commander'
import type { AnswerFlags, ApprovalsFlags } from './commands/approvals.ts'
import type { ChatFlags } from './commands/chat.ts'
import { colorsFor } from './terminal/colors.ts'
import { exitCodeTable, type ExitCode } from './exit-codes.ts'
import type { ExplainFlags } from './commands/explain.ts'
import type { DoctorFlags } from './commands/hooks-doctor.ts'
import type { HooksImportFlags } from './commands/hooks-import.ts'
import type { HooksListFlags } from './commands/hooks-list.ts'
import type { HooksTestFlags } from './commands/hooks-test.ts'
import {
  agentOptions,
  collect,
  collectUnlessOff,
  hooksOptions,
  jsonOption,
  showOptions,
  storeOptions,
  wholeNumber,
} from './options.ts'
import type { Place } from './cli-context.ts'
import type { PolicyFlags } from './commands/policy-bash.ts'
import type { ReplayFlags } from './commands/replay.ts'
import type { ResumeFlags } from './commands/resume.ts'
import type { RunFlags } from './commands/run.ts'
import type { SessionsFlags } from './commands/sessions.ts'
import type { DiffFlags, ForkFlags, StepsFlags } from './commands/fork.ts'
import type { ExportFlags, ImportFlags } from './commands/export.ts'
import type { TrustFlags } from './commands/trust.ts'

/** Every command and its options. `done` is told the exit code of the one that was typed. */
export function commandLine(place: Place, done: (code: ExitCode) => void): Command {
  const { command } = place
  const program = new Command('hookloop')
    .description('Runs agents whose every decision is a hook’s, and keeps what they do.')
    .version(version(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .configureHelp({ styleTitle: colorsFor(place.out, place.env).bold })
    .enablePositionalOptions() // or a value such as --system "--version" would be read as an option of ours
    .exitOverride()
    .addHelpText('after', `\nBegin with:\n  ${command} models\n  ${command} run --help\n  ${command} chat`)
  program.commandsGroup('Commands:')
  jsonOption(program.command('models'))
    .description('list providers: what is installed, which keys are set, what to type')
    .action(async ({ json = false }: { json?: boolean }) => {
      const { models } = await import('./commands/models.ts')
      done(await models({ ...place, json }))
    })
  addRuns(program, place, done)
  addApprovals(program, place, done)
  addSessions(program, place, done)
  addPolicy(program, place, done)
  addHooks(program, place, done)
  return program
}

type Done = (code: ExitCode) => void

function addRuns(program: Command, place: Place, done: Done): void {
  const after = `\n${examples(place.command)}\n\n${colorsFor(place.out, place.env).bold('Exit codes:')}\n${exitCodeWords()}`
  showOptions(hooksOptions(agentOptions(program.command('run'))))
    .description('run an agent, and show what it does')
    .argument('[input...]', 'what to say; "-" or a pipe reads it from stdin')
    .option('-f, --file <path>', 'an image, a document or a text to send along; may be repeated', collect)
    .option('--session <id>', 'go on with this session, or begin it under this name')
    .option('--no-store', 'keep nothing of it')
    .addOption(new Option('--init', 'run the Setup hooks first, for a project that is new').conflicts('maintenance'))
    .option('--maintenance', 'run the Setup hooks first, to put things in order')
    .addHelpText('after', after)
    .action(async (words: string[], flags: RunFlags) => {
      const { run } = await import('./commands/run.ts')
      done(await run(words, flags, place))
    })
  showOptions(hooksOptions(agentOptions(program.command('chat'))))
    .description('talk with an agent, line by line')
    .option('--session <id>', 'go on with this session, or begin it under this name')
    .option('--no-store', 'keep nothing of it')
    .option('--accept-missing <guard>', 'go on although this guard is missing from the agent; may be repeated', collect)
    .action(async (flags: ChatFlags) => {
      const { chat } = await import('./commands/chat.ts')
      done(await chat(flags, place))
    })
  showOptions(hooksOptions(agentOptions(program.command('resume'))))
    .description('go on with a run that waits for somebody, or whose process is gone')
    .argument('[session]', 'its id, or the beginning of it (default: the latest)')
    .option('--accept-missing <guard>', 'go on although this guard is missing from the agent; may be repeated', collect)
    .action(async (id: string | undefined, flags: ResumeFlags) => {
      const { resume } = await import('./commands/resume.ts')
      done(await resume(id, flags, place))
    })
}

function addApprovals(program: Command, place: Place, done: Done): void {
  program.commandsGroup('Questions:')
  jsonOption(storeOptions(program.command('approvals')))
    .description('list the questions that wait for somebody')
    .action(async (flags: ApprovalsFlags) => {
      const { approvals } = await import('./commands/approvals.ts')
      done(await approvals(flags, place))
    })
  answerOptions(program.command('approve').option('--args <json>', 'run it with these arguments instead'))
    .description('let calls run that were asked about')
    .action(async (ids: string[], flags: AnswerFlags) => {
      const { approve } = await import('./commands/approvals.ts')
      done(await approve(ids, flags, place))
    })
  answerOptions(program.command('deny').option('--reason <text>', 'what the model is told'))
    .description('refuse calls that were asked about')
    .action(async (ids: string[], flags: AnswerFlags) => {
      const { deny } = await import('./commands/approvals.ts')
      done(await deny(ids, flags, place))
    })
}

function addPolicy(program: Command, place: Place, done: Done): void {
  program.commandsGroup('Policies:')
  const policy = program.command('policy').description('check a policy before it is trusted')
  policy
    .command('bash')
    .description('say what the bash tool would do about each command on stdin; runs none of them')
    .option('--allow <rules>', 'what may run, with commas between; may be repeated', collect)
    .option('--deny <rules>', 'what may not, wherever it stands; may be repeated', collect)
    .option('--ask <rules>', 'what a person decides; may be repeated', collect)
    .option('--json', 'print a line of JSON for each command')
    .addHelpText('after', `\nExample:\n  echo 'git log | head' | ${place.command} policy bash --allow 'git log,head'`)
    .action(async (flags: PolicyFlags) => {
      const { policyBash } = await import('./commands/policy-bash.ts') // no other command needs a shell grammar
      done(await policyBash(flags, place))
    })
}

function addHooks(program: Command, place: Place, done: Done): void {
  program.commandsGroup('Hooks:')
  const list = async (flags: HooksListFlags): Promise<void> => {
    const { hooksList } = await import('./commands/hooks-list.ts')
    done(hooksList(flags, place))
  }
  const hooks = listOptions(program.command('hooks'))
    .description('list the hooks in files; below it: look at them, try them, take them over')
    .action(list)
  listOptions(hooks.command('list'))
    .description('list every hook that files bring, in the order in which they fire')
    .action(list)
  jsonOption(hooks.command('doctor'))
    .description(
      'fire every hook on every path, and say what is wrong; the hooks are really run, tools and models are not',
    )
    .option('-a, --agent <file>', 'the agent whose hooks and tools to look at, too')
    .option('--dir <folder>', 'the project (default: here)')
    .option('--no-user', 'leave out your own hooks')
    .action(async (flags: DoctorFlags) => {
      const { hooksDoctor } = await import('./commands/hooks-doctor.ts')
      done(await hooksDoctor(flags, place))
    })
  jsonOption(hooks.command('import'))
    .description('turn the hooks of .claude/settings.json into .hookloop/hooks.json, and say what is gained')
    .option('--dir <path>', 'the project or plugin, or one file of it (default: here)')
    .option('--user', 'also those in your own settings')
    .option('-o, --output <file>', 'where to write them; "-" prints them')
    .option('--force', 'write over a file that is there')
    .action(async (flags: HooksImportFlags) => {
      const { hooksImport } = await import('./commands/hooks-import.ts')
      done(hooksImport(flags, place))
    })
  jsonOption(program.command('trust'))
    .description('look at what the hooks of a project would run, and trust them as they are now')
    .argument('[folder]', 'the project (default: here)')
    .option('-y, --yes', 'trust them without being asked')
    .option('--trust <hash>', 'trust them without being asked, if they have this hash')
    .option('--revoke', 'trust nothing in it any more')
    .action(async (folder: string | undefined, flags: TrustFlags) => {
      const { trust } = await import('./commands/trust.ts')
      done(await trust(folder, flags, place))
    })
  jsonOption(hooks.command('test'))
    .description('fire one event, given as JSON on stdin, and print what the hooks decide')
    .argument('<event>', 'such as PreToolUse')
    .option(
      '--dir <path>',
      'run the hooks of this project or plugin, or of this one file, trusted or not (default: here, if they are trusted)',
    )
    .option('--handler <command>', 'run this command as the only hook, without any settings')
    .option('--no-user', 'leave out the hooks in your own settings')
    .option('--pass-env <name>', 'pass on this variable although it looks like a secret; may be repeated', collect)
    .option('-m, --model <name>', 'what hooks ask that ask a model (default: HOOKLOOP_MODEL)')
    .addHelpText('after', hooksTestExamples(place.command))
    .action(async (event: string, flags: HooksTestFlags) => {
      const { hooksTest } = await import('./commands/hooks-test.ts')
      done(await hooksTest(event, flags, place))
    })
}

function hooksTestExamples(command: string): string {
  return `
Examples:
  echo '{"tool_name":"Bash","tool_input":{"command":"rm -rf /"}}' | ${command} hooks test PreToolUse --dir . --json
  echo '{"prompt":"hello"}' | ${command} hooks test UserPromptSubmit --handler 'python3 context.py'

What the event leaves out is filled in. The folder it names as "cwd" is where hooks run, if it is there; otherwise
they run in --dir. Hooks of a skill need "skills": ["its name"], those of an agent "agent_type": "its name".`
}

function listOptions(command: Command): Command {
  return jsonOption(command)
    .option('--dir <path>', 'the project or plugin, or one file of it (default: here)')
    .option('--no-user', 'leave out your own hooks')
}

function answerOptions(command: Command): Command {
  command
    .argument('<id...>', 'ids as `approvals` shows them, or the beginning of them')
    .option('--by <name>', 'who answers, kept with the answer (default: the user)')
    .option('--resume', 'go on with the session at once; what follows is for that')
  return showOptions(hooksOptions(agentOptions(command)))
}

function addSessions(program: Command, place: Place, done: Done): void {
  program.commandsGroup('Sessions:')
  const list = jsonOption(storeOptions(program.command('sessions')))
    .description('list sessions, the latest first')
    .action(async (flags: SessionsFlags) => {
      const { sessions } = await import('./commands/sessions.ts')
      done(await sessions(flags, place))
    })
  jsonOption(storeOptions(list.command('delete')))
    .description('delete sessions for good')
    .argument('<session...>', 'ids, or the beginnings of them')
    .action(async (ids: string[], flags: SessionsFlags) => {
      const { deleteSessions } = await import('./commands/sessions.ts')
      done(await deleteSessions(ids, flags, place))
    })
  jsonOption(storeOptions(program.command('explain')))
    .description('say who decided what in the latest run of a session, and why')
    .argument('[session]', 'its id, or the beginning of it (default: the latest)')
    .action(async (id: string | undefined, flags: ExplainFlags) => {
      const { explainSession } = await import('./commands/explain.ts')
      done(await explainSession(id, flags, place))
    })
  jsonOption(storeOptions(program.command('steps')))
    .description('list the steps of a session, for fork --at')
    .argument('[session]', 'its id, or the beginning of it (default: the latest)')
    .action(async (id: string | undefined, flags: StepsFlags) => {
      const { steps } = await import('./commands/fork.ts')
      done(await steps(id, flags, place))
    })
  jsonOption(storeOptions(program.command('fork')))
    .description('begin a new session where another one was')
    .argument('<session>', 'its id, or the beginning of it')
    .option('--at <n>', 'the step to go back to, by the number that `steps` shows (default: the end)', wholeNumber)
    .option('--as <id>', 'the id of the new session')
    .option('--message <text>', 'what the user says there, instead of what was said')
    .action(async (id: string, flags: ForkFlags) => {
      const { fork } = await import('./commands/fork.ts')
      done(await fork(id, flags, place))
    })
  jsonOption(storeOptions(program.command('diff')))
    .description('say where two sessions part')
    .argument('<session>', 'its id, or the beginning of it')
    .argument('<other>', 'the other one')
    .option('--exit-code', 'end with 1 if they are not the same')
    .action(async (a: string, b: string, flags: DiffFlags) => {
      const { diff } = await import('./commands/fork.ts')
      done(await diff([a, b], flags, place))
    })
  jsonOption(agentOptions(program.command('replay')))
    .description('say what other hooks would have decided in a run that is kept; no model and no tool is called')
    .argument('<session>', 'its id, or the beginning of it')
    .option('--hooks <file>', 'a module with the hooks to judge with as well; may be repeated', collect)
    .option('--without <hook>', 'judge without this hook; may be repeated', collect)
    .option('--run <n>', 'which run of the session, counted from 1 (default: the last)', wholeNumber)
    .option('--exit-code', 'end with 1 if anything would have been decided otherwise')
    .action(async (id: string, flags: ReplayFlags) => {
      const { replaySession } = await import('./commands/replay.ts')
      done(await replaySession(id, flags, place))
    })
  jsonOption(storeOptions(program.command('export')))
    .description('write a session as one file, without what looks like a secret')
    .argument('[session]', 'its id, or the beginning of it (default: the latest)')
    .option('-o, --output <file>', 'where to (default: stdout)')
    .option('--force', 'write over a file that is there')
    .option(
      '--redact <pattern>',
      'take this out, too: a text, or /a regular expression/; may be repeated',
      collectUnlessOff,
    )
    .option('--no-redact', 'take nothing out')
    .action(async (id: string | undefined, flags: ExportFlags) => {
      const { exportTo } = await import('./commands/export.ts')
      done(await exportTo(id, flags, place))
    })
  jsonOption(storeOptions(program.command('import')))
    .description('put an exported session into the store')
    .argument('<file>', 'what was exported, or "-" for stdin')
    .option('--as <id>', 'the id to keep it under')
    .action(async (file: string, flags: ImportFlags) => {
      const { importFrom } = await import('./commands/export.ts')
      done(await importFrom(file, flags, place))
    })
}

function examples(command: string): string {
  return [
    'Examples:',
    `  ${command} run "Why is the sky blue?" --model ollama/llama3.2`,
    `  git diff | ${command} run "Review this" --model anthropic/claude-sonnet-5-5 --quiet`,
    `  ${command} run "Repair the build" --agent agent.ts --max-cost 0.50 --explain`,
  ].join('\n')
}

function exitCodeWords(): string {
  return exitCodeTable.map(([code, meaning]) => `  ${String(code).padEnd(4)} ${meaning}`).join('\n')
}

function version(): string {
  const file = fileURLToPath(import.meta.resolve('hookloop/package.json'))
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version
}
