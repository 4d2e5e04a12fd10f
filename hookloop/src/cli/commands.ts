import type { CommandDefinition } from './command.ts'

/** A command as `hookloop --help` lists it. Its file is loaded only when the command is called. */
type CommandEntry = {
  /** A subcommand follows its parent: `hooks`, then `hooks list`. */
  readonly name: string
  readonly summary: string
  /** Omitted for a command that only has subcommands. */
  readonly load?: () => Promise<{ readonly command: CommandDefinition }>
}

/** Every command, by the heading under which help lists it. */
export const commands: { readonly [heading: string]: readonly CommandEntry[] } = {
  'Run agents:': [
    { name: 'run', summary: 'run an agent once', load: () => import('./commands/run.ts') },
    { name: 'chat', summary: 'talk to an agent', load: () => import('./commands/chat.ts') },
    { name: 'serve', summary: 'serve an agent to a chat page', load: () => import('./commands/serve.ts') },
    { name: 'worker', summary: 'run the sessions of a fleet', load: () => import('./commands/worker.ts') },
    { name: 'resume', summary: 'resume a suspended or interrupted run', load: () => import('./commands/resume.ts') },
    { name: 'approvals', summary: 'list pending approvals', load: () => import('./commands/approvals.ts') },
    { name: 'approve', summary: 'approve pending tool calls', load: () => import('./commands/approve.ts') },
    { name: 'block', summary: 'block pending tool calls', load: () => import('./commands/block.ts') },
    { name: 'acp', summary: 'connect an editor to an agent', load: () => import('./commands/acp.ts') },
    { name: 'studio', summary: 'show sessions in the browser', load: () => import('./commands/studio.ts') },
    { name: 'models', summary: 'list model providers and their setup', load: () => import('./commands/models.ts') },
  ],
  'Sessions:': [
    { name: 'sessions', summary: 'list or delete sessions', load: () => import('./commands/sessions.ts') },
    { name: 'sessions delete', summary: 'delete sessions', load: () => import('./commands/sessions-delete.ts') },
    { name: 'sessions prune', summary: 'delete old sessions', load: () => import('./commands/sessions-prune.ts') },
    { name: 'watch', summary: 'follow the events of a session', load: () => import('./commands/watch.ts') },
    { name: 'stop', summary: 'stop a run, in whatever process', load: () => import('./commands/stop.ts') },
    { name: 'explain', summary: 'explain the decisions of a run', load: () => import('./commands/explain.ts') },
    { name: 'steps', summary: 'list the steps of a session', load: () => import('./commands/steps.ts') },
    { name: 'fork', summary: 'copy a session, up to a step', load: () => import('./commands/fork.ts') },
    { name: 'rewind', summary: 'go back to a step, in place', load: () => import('./commands/rewind.ts') },
    { name: 'diff', summary: 'compare two sessions', load: () => import('./commands/diff.ts') },
    { name: 'replay', summary: 'replay a run with other hooks', load: () => import('./commands/replay.ts') },
    { name: 'export', summary: 'export a session to a file', load: () => import('./commands/export.ts') },
    { name: 'import', summary: 'import an exported session', load: () => import('./commands/import.ts') },
  ],
  'Hooks and policy:': [
    { name: 'hooks', summary: 'list, test or check hooks', load: () => import('./commands/hooks-list.ts') },
    { name: 'hooks list', summary: 'list the hooks in files', load: () => import('./commands/hooks-list.ts') },
    { name: 'hooks test', summary: 'send one event to the hooks', load: () => import('./commands/hooks-test.ts') },
    { name: 'trust', summary: 'review and trust the hooks of a project', load: () => import('./commands/trust.ts') },
    { name: 'policy', summary: 'check a policy before you use it' },
    { name: 'policy bash', summary: 'check shell commands', load: () => import('./commands/policy-bash.ts') },
  ],
}
