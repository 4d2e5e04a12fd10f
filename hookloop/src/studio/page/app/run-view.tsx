import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { RunInfo } from '../../run.types.ts'
import { call, toCallError } from './api.ts'
import { wordFor } from './cells.ts'
import { Detail } from './detail.tsx'
import { CompareDialog, ForkDialog } from './dialogs.tsx'
import { download } from './download.ts'
import { count, duration, moment, since } from './format.ts'
import { Gauges } from './gauges.tsx'
import { Icon } from './icons.tsx'
import { useKeys } from './keys.ts'
import { Matrix } from './matrix.tsx'
import { Loaded, Problem, Status, useLoaded, Warnings } from './load.tsx'
import { link, note, type Route, type RunTab } from './router.ts'
import { openRun, type RunModel, type Selection } from './run-model.ts'
import { remoteRun, type RunSource } from './run-source.ts'
import { SearchBar } from './search-bar.tsx'
import { announcement, dialog, now } from './studio.ts'
import { LongText, safe, visible } from './text.tsx'
import { TimeView } from './time-view.tsx'
import type { Scroller } from './virtual.tsx'
import { WhatIf } from './what-if.tsx'

type RunRoute = Extract<Route, { view: 'run' }>

/** One run. `source` is given if the page is a file: then there is no studio to call. */
export function RunView({ at, source }: { readonly at: RunRoute; readonly source?: RunSource }) {
  const model = useMemo(
    () => openRun(source ?? remoteRun({ session: at.session, ...(at.run !== undefined && { run: at.run }) }), at),
    [at.session, at.run, source],
  )
  useEffect(() => () => model.close(), [model])
  const [info, error] = [model.info.value, model.error.value]
  if (info === undefined) return error === undefined ? <div class="empty">Loading …</div> : <Problem error={error} />
  return <OpenRun model={model} info={info} at={at} isFile={source !== undefined} />
}

function OpenRun(props: {
  readonly model: RunModel
  readonly info: RunInfo
  readonly at: RunRoute
  readonly isFile: boolean
}) {
  const { model, info, at, isFile } = props
  const tab = useSignal<RunTab>(at.tab)
  const side = useSignal<'detail' | 'whatIf' | undefined>('detail')
  const searching = useSignal(false)
  const scroller = useRef<Scroller | null>(null)
  const selected = model.selected.value
  const here = { view: 'run', session: info.session, run: info.index } as const

  useEffect(() => {
    tab.value = at.tab
  }, [at.tab])
  useEffect(() => {
    const row = selected?.row
    note({ ...here, tab: tab.value, ...(row !== undefined && { row }) })
    if (row !== undefined) side.value ??= 'detail'
  }, [selected?.row, tab.value])

  const show = (which: RunTab): void => {
    tab.value = which
  }
  const focusMatrix = (): void => document.getElementById('matrix')?.focus({ preventScroll: true })
  // Keys come faster than the page is drawn, so each starts from what is selected then.
  const current = (): Selection | undefined => model.selected.peek()
  const select = (row: number, column = current()?.column): void => {
    show('decisions')
    model.select({ row: Math.max(0, Math.min(row, model.total.peek() - 1)), ...(column !== undefined && { column }) })
  }
  const move = (by: number): void => (focusMatrix(), select((current()?.row ?? -1) + by))
  const moveAcross = (by: number): void => {
    const at = current()
    if (at === undefined) return
    const ids = model.columns.peek().map(({ id }) => id)
    const to = (at.column === undefined ? -1 : ids.indexOf(at.column)) + by
    const column = to < 0 ? undefined : ids[Math.min(to, ids.length - 1)]
    model.select({ row: at.row, ...(column !== undefined && { column }) })
  }
  const findDecision = async (back: boolean): Promise<void> => {
    const from = current()?.row ?? (back ? model.total.peek() : -1)
    const row = await model.source.find({ from, back, what: 'decision' }).catch(() => null)
    if (row === null) announcement.value = back ? 'No earlier decision.' : 'No more decisions.'
    else {
      await model.need(row, row + 1)
      select(row, firstDecision(model, row))
      focusMatrix()
    }
  }
  const finding = useRef(Promise.resolve())
  const goToDecision = (back: boolean): void => {
    finding.current = finding.current.then(() => findDecision(back))
  }
  const toggleWhatIf = (): void => {
    side.value = side.value === 'whatIf' ? 'detail' : 'whatIf'
  }
  const page = 20
  useKeys({
    n: () => goToDecision(false),
    p: () => goToDecision(true),
    N: () => goToDecision(true),
    '/': () => (show('decisions'), (searching.value = true)),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    j: () => move(1),
    k: () => move(-1),
    ArrowRight: () => moveAcross(1),
    ArrowLeft: () => moveAcross(-1),
    l: () => moveAcross(1),
    h: () => moveAcross(-1),
    PageDown: () => move(page),
    PageUp: () => move(-page),
    Home: () => select(0),
    g: () => select(0),
    End: () => select(Infinity),
    G: () => select(Infinity),
    t: () => show(tab.value === 'time' ? 'decisions' : 'time'),
    Enter: () => document.querySelector<HTMLElement>('.side')?.focus(),
    Escape: () => {
      if (searching.value) searching.value = false
      else if (side.value === 'whatIf') side.value = 'detail'
      else model.select(undefined)
      focusMatrix()
    },
    ...(isFile
      ? {}
      : {
          w: toggleWhatIf,
          f: () => (dialog.value = 'fork'),
          c: () => (dialog.value = 'compare'),
        }),
  })

  const isPanelOpen = side.value === 'whatIf' || selected !== undefined
  return (
    <div class={`run-view${isPanelOpen && tab.value === 'decisions' ? ' reading' : ''}`}>
      <RunHead model={model} info={info} isFile={isFile} showGauges={tab.value !== 'time'} />
      <nav class="tabs" aria-label="Views of the run">
        <div role="tablist">
          <Tab which="decisions" now={tab.value} show={show} label={`Decisions ${count(info.decisions)}`} />
          <Tab which="time" now={tab.value} show={show} label="Time and cost" />
          <Tab which="explanation" now={tab.value} show={show} label="Explanation" />
        </div>
        {tab.value === 'decisions' && (
          <div class="actions">
            <button type="button" onClick={() => goToDecision(false)}>
              <Icon name="next" /> Next decision <kbd>n</kbd>
            </button>
            <button type="button" aria-pressed={searching.value} onClick={() => (searching.value = !searching.value)}>
              <Icon name="search" /> Search <kbd>/</kbd>
            </button>
            <label class="check" title="Also show hooks that only keep records for a capability">
              <input
                type="checkbox"
                checked={model.showAllColumns.value}
                onChange={() => (model.showAllColumns.value = !model.showAllColumns.value)}
              />{' '}
              all hooks
            </label>
            {!isFile && (
              <button type="button" aria-pressed={side.value === 'whatIf'} onClick={toggleWhatIf}>
                What if … <kbd>w</kbd>
              </button>
            )}
          </div>
        )}
      </nav>
      {searching.value && <SearchBar model={model} select={select} close={() => (searching.value = false)} />}
      {tab.value === 'decisions' && (
        <div class="split">
          <main class="pane">
            {model.total.value === 0 ? (
              <div class="empty">{info.live ? 'The run starts …' : 'Nothing happened in this run.'}</div>
            ) : (
              <Matrix model={model} control={scroller} />
            )}
            <LiveStrip model={model} info={info} />
          </main>
          <aside
            class={`side${isPanelOpen ? ' open' : ''}`}
            tabIndex={-1}
            aria-label={side.value === 'whatIf' ? 'What if' : 'Detail'}
          >
            <button
              type="button"
              class="close"
              aria-label="Close"
              onClick={() => (side.value === 'whatIf' ? (side.value = 'detail') : model.select(undefined))}
            >
              <Icon name="close" />
            </button>
            {side.value === 'whatIf' ? (
              <WhatIf model={model} info={info} />
            ) : (
              <Detail model={model} canFork={!isFile} />
            )}
          </aside>
        </div>
      )}
      {tab.value === 'time' && <TimeView model={model} info={info} onRow={(row) => select(row, undefined)} />}
      {tab.value === 'explanation' && <Explanation model={model} info={info} />}
      {dialog.value === 'fork' && (
        <ForkDialog info={info} row={selected === undefined ? undefined : model.row(selected.row)} />
      )}
      {dialog.value === 'compare' && <CompareDialog info={info} />}
    </div>
  )
}

/** As of when it was opened, and of when the status changed last. */
function Explanation({ model, info }: { readonly model: RunModel; readonly info: RunInfo }) {
  const loaded = useLoaded(() => model.source.explanation(), [model, info.status])
  return (
    <main class="page">
      <Loaded of={loaded}>
        {({ text, warnings }) => (
          <>
            <LongText text={text} />
            <Warnings texts={warnings} />
          </>
        )}
      </Loaded>
    </main>
  )
}

/** The column that decided in a row, so that "next decision" shows who it was. */
function firstDecision(model: RunModel, index: number): number | undefined {
  const row = model.row(index)
  if (row === undefined) return undefined
  const decided = (wanted: RegExp) =>
    model.columns.value.find((column) => !column.shadow && wanted.test(row.cells[column.id] ?? ' '))
  const column = decided(/[x!?]/) ?? decided(/[^ \-+]/)
  if (column !== undefined) announcement.value = `${row.text}. ${column.hook}: ${wordFor(row, column)}.`
  return column?.id
}

function Tab(props: {
  readonly which: RunTab
  readonly now: RunTab
  readonly show: (tab: RunTab) => void
  readonly label: string
}) {
  const { which, show, label } = props
  return (
    <button type="button" role="tab" aria-selected={which === props.now} onClick={() => show(which)}>
      {label}
    </button>
  )
}

function RunHead(props: {
  readonly model: RunModel
  readonly info: RunInfo
  readonly isFile: boolean
  readonly showGauges: boolean
}) {
  const { model, info, isFile, showGauges } = props
  const { decided, session, index, runs } = info
  const problem = useSignal('')
  const place = (run: number) => link({ view: 'run', session, run, tab: 'decisions' })
  const save = async (as: 'jsonl' | 'html'): Promise<void> => {
    try {
      download(await call('export', { session, ...(as === 'html' && { run: index }), as }))
    } catch (cause) {
      problem.value = toCallError(cause).message
    }
  }
  return (
    <header class="run-head">
      <div class="line">
        {!isFile && (
          <a href={link({ view: 'sessions' })} class="back" aria-label="All sessions">
            ‹
          </a>
        )}
        <h1 title={visible(info.input.slice(0, 500))}>{safe(info.input.slice(0, 300) || session)}</h1>
        <Status of={info.status} />
        {info.live && <span class="live">live</span>}
        {!isFile && runs > 1 && (
          <span class="runs">
            {index > 0 && (
              <a href={place(index - 1)} aria-label="Previous run">
                ‹
              </a>
            )}
            run {index + 1} of {runs}
            {index < runs - 1 && (
              <a href={place(index + 1)} aria-label="Next run">
                ›
              </a>
            )}
          </span>
        )}
        {!isFile && (
          <span class="actions">
            <button type="button" onClick={() => (dialog.value = 'fork')}>
              Fork <kbd>f</kbd>
            </button>
            <button type="button" onClick={() => (dialog.value = 'compare')}>
              Compare <kbd>c</kbd>
            </button>
            <button type="button" onClick={() => void save('html')} title="The run as one HTML file, to share">
              HTML
            </button>
            <button type="button" onClick={() => void save('jsonl')} title="The session as JSON lines">
              JSONL
            </button>
          </span>
        )}
      </div>
      <div class="line second">
        <p class="decided">
          {decided !== undefined && (
            <>
              <b>by {safe(decided.by)}</b> {safe(decided.message)}
              {decided.definedAt !== undefined && <code>{safe(decided.definedAt)}</code>}
            </>
          )}
          {info.wayOn !== undefined && <span class="quiet"> {safe(info.wayOn)}</span>}
        </p>
        <p class="quiet meta">
          {safe(info.agent)} · <code title={visible(info.cwd ?? '')}>{safe(session)}</code> ·{' '}
          <span title={moment(info.startedAt)}>{since(info.startedAt, now.value)}</span>
          {info.endedAt !== undefined && ` · took ${duration(info.endedAt - info.startedAt)}`}
        </p>
      </div>
      {showGauges && <Gauges info={info} />}
      {model.newer.value !== undefined && (
        <p class="notice">
          This session has a newer run. <a href={place(model.newer.value)}>Show run {model.newer.value + 1}</a>
        </p>
      )}
      <Warnings texts={[problem.value, model.error.value?.message]} />
    </header>
  )
}

function LiveStrip({ model, info }: { readonly model: RunModel; readonly info: RunInfo }) {
  if (model.connection.value === 'deleted')
    return <p class="strip lost">This session was deleted. What is shown is not stored any more.</p>
  if (model.connection.value === 'lost')
    return <p class="strip lost">The studio does not answer. What is shown may be old. Connecting …</p>
  if (!info.live) return null
  return (
    <p class="strip">
      <span class="live">live</span>
      {safe(model.tail.value)}
    </p>
  )
}
