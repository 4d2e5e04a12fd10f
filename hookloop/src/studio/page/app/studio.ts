import { signal } from '@preact/signals'
import type { StudioInfo } from '../../api.types.ts'
import type { Question } from '../../run.types.ts'
import { call, type CallError, follow, stream, toCallError } from './api.ts'

// What all views share.

export const studio = signal<StudioInfo | undefined>(undefined)
export const inbox = signal<readonly Question[] | undefined>(undefined)
export const failure = signal<CallError | undefined>(undefined)
/** The studio did not answer. The page connects again by itself. */
export const offline = signal(false)
/** The time, every 20 seconds. */
export const now = signal(Date.now())
/** What a screen reader says. */
export const announcement = signal('')
export const dialog = signal<'help' | 'fork' | 'compare' | 'search' | undefined>(undefined)

export function startStudio(): void {
  setInterval(() => (now.value = Date.now()), 20_000)
  call('studio', {}).then(
    (info) => (studio.value = info),
    (cause: unknown) => (failure.value = toCallError(cause)),
  )
  follow((signal) => stream('inbox', {}, signal), {
    line: ({ questions }) => (inbox.value = questions),
    state: (state, error) => {
      offline.value = state === 'lost'
      if (error?.code === 'TOKEN_INVALID') failure.value = error
    },
  })
}
