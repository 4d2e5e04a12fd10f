import { render } from 'preact'
import { useEffect } from 'preact/hooks'
import type { EmbeddedRun } from '../../run.types.ts'
import { takeToken } from './api.ts'
import { CompareView } from './compare-view.tsx'
import { HelpDialog } from './dialogs.tsx'
import { HooksView } from './hooks-view.tsx'
import { InboxView } from './inbox-view.tsx'
import { useKeys } from './keys.ts'
import { Problem } from './load.tsx'
import { go, link, route, startRouter } from './router.ts'
import { embeddedRun, type RunSource } from './run-source.ts'
import { RunView } from './run-view.tsx'
import { SessionsView } from './sessions-view.tsx'
import { announcement, dialog, failure, inbox, offline, startStudio, studio } from './studio.ts'
import { safe, visible } from './text.tsx'

const VIEWS = ['sessions', 'inbox', 'hooks'] as const

function App({ file }: { readonly file?: RunSource | undefined }) {
  const here = route.value
  useEffect(() => {
    const what = here.view === 'run' ? here.session : here.view
    if (file === undefined) document.title = `${visible(what.slice(0, 60))} · Hookloop studio`
  }, [here])
  useKeys({
    '?': () => (dialog.value = 'help'),
    ...(file === undefined && Object.fromEntries(VIEWS.map((view, i) => [String(i + 1), () => go({ view })]))),
  })
  return (
    <>
      <Bar isFile={file !== undefined} />
      {file !== undefined ? (
        <RunView at={{ view: 'run', session: '', tab: 'decisions', ...(here.view === 'run' && here) }} source={file} />
      ) : failure.value !== undefined ? (
        <Problem error={failure.value} />
      ) : here.view === 'run' ? (
        <RunView key={`${here.session} ${here.run ?? ''}`} at={here} />
      ) : here.view === 'compare' ? (
        <CompareView a={here.a} b={here.b} />
      ) : here.view === 'inbox' ? (
        <InboxView />
      ) : here.view === 'hooks' ? (
        <HooksView />
      ) : (
        <SessionsView />
      )}
      {dialog.value === 'help' && <HelpDialog />}
      <p class="hidden" role="status" aria-live="polite">
        {announcement.value}
      </p>
    </>
  )
}

function Bar({ isFile }: { readonly isFile: boolean }) {
  const waiting = inbox.value?.length ?? 0
  const { view } = route.value
  return (
    <header class="bar">
      <span class="brand">hookloop</span>
      {isFile ? (
        <span class="quiet">a recorded run, in one file</span>
      ) : (
        <nav aria-label="Studio">
          {VIEWS.map((each) => (
            <a key={each} href={link({ view: each })} aria-current={view === each ? 'page' : undefined}>
              {each[0]!.toUpperCase() + each.slice(1)}
              {each === 'inbox' && waiting > 0 && (
                <span class="badge" aria-label={`${waiting} waiting`}>
                  {waiting}
                </span>
              )}
            </a>
          ))}
        </nav>
      )}
      {offline.value && <span class="chip bad">not connected</span>}
      <span class="store quiet" title={studio.value?.dir}>
        {safe(studio.value?.store ?? '')}
      </span>
      <button type="button" class="plain" aria-label="Keys and signs" onClick={() => (dialog.value = 'help')}>
        <kbd>?</kbd>
      </button>
    </header>
  )
}

const data = document.getElementById('hookloop-data')?.textContent
if (data === undefined || data === null) {
  takeToken()
  startStudio()
}
startRouter()
render(<App file={data ? embeddedRun(JSON.parse(data) as EmbeddedRun) : undefined} />, document.body)
