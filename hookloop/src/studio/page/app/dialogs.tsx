import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { SessionSummary } from '../../api.types.ts'
import type { Row, RunInfo, RunSummary } from '../../run.types.ts'
import { call, toCallError } from './api.ts'
import { legend } from './cells.ts'
import { since } from './format.ts'
import { Icon } from './icons.tsx'
import { Status, Warnings } from './load.tsx'
import { go, type Place } from './router.ts'
import { dialog, now } from './studio.ts'
import { safe } from './text.tsx'

/** A modal dialog. The browser keeps the focus inside, and closes it with Escape. */
function Dialog({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  const box = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const before = document.activeElement
    box.current!.showModal()
    return () => before instanceof HTMLElement && before.focus()
  }, [])
  const own = useRef(dialog.value)
  // The browser reports that it closed a dialog a moment later, when another one may be open.
  const close = (): void => {
    if (dialog.value === own.current) dialog.value = undefined
  }
  return (
    <dialog ref={box} aria-label={title} onClose={close} onClick={(event) => event.target === box.current && close()}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="close" aria-label="Close" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      {children}
    </dialog>
  )
}

const KEYS = [
  ['n / p', 'next, previous decision'],
  ['/', 'search'],
  ['↑ ↓ or k j', 'previous, next row'],
  ['← → or h l', 'previous, next hook'],
  ['Enter', 'read the detail'],
  ['g / G', 'first, last row'],
  ['w', 'what if'],
  ['t', 'time and cost'],
  ['f', 'fork the session'],
  ['c', 'compare with another run'],
  ['1 2 3', 'sessions, inbox, hooks'],
  ['Esc', 'close'],
] as const

export function HelpDialog() {
  return (
    <Dialog title="Keys and signs">
      <div class="help">
        <dl>
          {KEYS.map(([keys, what]) => (
            <Term key={keys} means={what}>
              <kbd>{keys}</kbd>
            </Term>
          ))}
        </dl>
        <dl>
          {legend.map(({ word, icon, tone }) => (
            <Term key={word} means={word}>
              <span class={`mark ${tone}`}>
                <Icon name={icon} />
              </span>
            </Term>
          ))}
          <Term means="no opinion">
            <i class="dot" />
          </Term>
          <Term means="shadow: recorded, not applied">
            <span class="mark bad shadow">
              <Icon name="blocked" />
            </span>
          </Term>
        </dl>
      </div>
    </Dialog>
  )
}

function Term({ means, children }: { readonly means: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{children}</dt>
      <dd>{means}</dd>
    </div>
  )
}

export function ForkDialog({ info, row }: { readonly info: RunInfo; readonly row: Row | undefined }) {
  const message = useSignal('')
  const state = useSignal<{ readonly busy?: true; readonly error?: string }>({})
  const at = row?.forkAt
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    state.value = { busy: true }
    try {
      const text = message.value.trim()
      const request = { session: info.session, ...(at !== undefined && { at }), ...(text !== '' && { message: text }) }
      const { session } = await call('fork', request)
      dialog.value = undefined
      go({ view: 'run', session, tab: 'decisions' })
    } catch (cause) {
      state.value = { error: toCallError(cause).message }
    }
  }
  return (
    <Dialog title={at === undefined ? 'Fork the session from its end' : `Fork the session after step ${row!.step + 1}`}>
      <form onSubmit={(event) => void submit(event)}>
        <p class="quiet">A new session with the conversation up to there. This one is not changed.</p>
        <label>
          Replace the user message (optional)
          <textarea rows={3} value={message.value} onInput={(event) => (message.value = event.currentTarget.value)} />
        </label>
        <Warnings texts={[state.value.error]} />
        <button type="submit" class="primary" disabled={state.value.busy === true}>
          Fork
        </button>
      </form>
    </Dialog>
  )
}

/** Chooses what to compare a run with: another run of its session, or the last run of another session. */
export function CompareDialog({ info }: { readonly info: RunInfo }) {
  const text = useSignal('')
  const sessions = useSignal<readonly SessionSummary[]>([])
  const runs = useSignal<readonly RunSummary[]>([])
  const error = useSignal('')
  const a: Place = { session: info.session, run: info.index }
  useEffect(() => {
    const loaded = new AbortController()
    const fail = (cause: unknown): void => {
      if (!loaded.signal.aborted) error.value = toCallError(cause).message
    }
    call('sessions', { text: text.value, count: 20 }, loaded.signal).then(
      (page) => (sessions.value = page.sessions),
      fail,
    )
    return () => loaded.abort()
  }, [text.value])
  useEffect(() => {
    call('session', { session: info.session }).then(
      (loaded) => (runs.value = loaded.runs),
      () => undefined,
    )
  }, [])
  const choose = (b: Place): void => {
    dialog.value = undefined
    go({ view: 'compare', a, b })
  }
  return (
    <Dialog title="Compare this run with …">
      <ul class="choices">
        {runs.value
          .filter(({ index }) => index !== info.index)
          .map((run) => (
            <li key={run.index}>
              <button type="button" onClick={() => choose({ session: info.session, run: run.index })}>
                <Status of={run.status} />
                <span>
                  run {run.index + 1}: {safe(run.input.slice(0, 200))}
                </span>
              </button>
            </li>
          ))}
      </ul>
      <input
        type="search"
        aria-label="Find a session"
        placeholder="Find a session …"
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
      <ul class="choices">
        {sessions.value
          .filter(({ id }) => id !== info.session)
          .map((session) => (
            <li key={session.id}>
              <button type="button" onClick={() => choose({ session: session.id })}>
                <Status of={session.status} />
                <span>{safe(session.title || session.id)}</span>
                <span class="quiet">{since(session.updatedAt, now.value)}</span>
              </button>
            </li>
          ))}
      </ul>
      <Warnings texts={[error.value]} />
    </Dialog>
  )
}
