// What a deploy changes of an agent between a crash and a resume.

/** The hook that a change adds. */
export const addedHooks: { readonly [change: string]: string } = {
  'guard-blocks': 'block-A',
  'guard-blocks-sub': 'block-sub',
  'guard-asks': 'ask-all',
  'guard-asks-step': 'ask-step',
  'guard-throws': 'throw-A',
  'guard-slow': 'slow-guard',
  budget: 'budget',
  transform: 'args-changed',
  'stop-step': 'stop-step',
  'stop-model': 'stop-model',
  'stop-tool': 'stop-tool',
  'hook-stops': 'hook-stops',
  strip: 'strip',
  withhold: 'withhold',
  'hook-throws': 'hook-throws',
  'block-input': 'block-input',
  'input-throws': 'input-throws',
  'stop-run': 'stop-run',
  shadow: 'shadow',
  around: 'around',
}

/** `none` is the same agent. The others are handled where the part of the agent is made. */
export const changes = [
  'none',
  ...Object.keys(addedHooks),
  'tool-removed',
  'tool-added',
  'schema',
  'prompt',
  'not-idempotent',
  'idempotent',
  'no-retry',
  'sub-removed',
  'child-tool-removed',
  'hooks-removed',
  'one-step',
  'approver-blocks',
] as const

/** Changes after which no tool may be executed, and no model called for a step. */
export const stopsTools: ReadonlySet<string> = new Set(['stop-step', 'stop-model', 'stop-tool', 'hook-stops'])
/** The same, if the run has not closed its first step: it stops before that. */
export const STOPS_FIRST_STEP = 'stop-run'
/** Changes after which other calls are asked about than before: what asks is put off. */
export const changesQuestions: ReadonlySet<string> = new Set(['guard-asks', 'hooks-removed', 'approver-blocks'])
export const stopsModels: ReadonlySet<string> = new Set(['stop-step', 'stop-model', 'hook-stops'])
