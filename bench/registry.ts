import type { Figures, Measurement } from './measurement.ts'

/** By name, in the order in which they run and are shown. Loaded one by one: an older commit may not have what one needs. */
export const measurements: { readonly [name: string]: () => Promise<{ readonly measurement: Measurement }> } = {
  steps: () => import('./measurements/steps.ts'),
  growth: () => import('./measurements/growth.ts'),
  hooks: () => import('./measurements/hooks.ts'),
  concurrent: () => import('./measurements/concurrent.ts'),
  tools: () => import('./measurements/tools.ts'),
  memory: () => import('./measurements/memory.ts'),
  stream: () => import('./measurements/stream.ts'),
  sessions: () => import('./measurements/sessions.ts'),
  messages: () => import('./measurements/messages.ts'),
  stores: () => import('./measurements/stores.ts'),
  events: () => import('./measurements/events.ts'),
  workers: () => import('./measurements/workers.ts'),
  'shell-hooks': () => import('./measurements/shell-hooks.ts'),
  imports: () => import('./measurements/imports.ts'),
  cli: () => import('./measurements/cli.ts'),
}

export async function measure(name: string): Promise<Figures> {
  const { measurement } = await measurements[name]!()
  return measurement.measure()
}
