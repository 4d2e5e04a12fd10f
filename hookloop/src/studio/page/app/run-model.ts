import { batch, computed, type ReadonlySignal, signal, type Signal } from '@preact/signals'
import type { WhatIfReport } from '../../api.types.ts'
import type { Column, Row, RowDetail, RunChange, RunInfo } from '../../run.types.ts'
import { type CallError, toCallError } from './api.ts'
import type { RunSource } from './run-source.ts'

const PAGE = 200
const MAX_TAIL_CHARS = 300
const CHANGEABLE = 500

export type Selection = { readonly row: number; /** The id of a column. */ readonly column?: number }

/** One run as the page shows it: what is loaded of it, what is selected, and what happens now. */
export type RunModel = {
  readonly source: RunSource
  readonly info: ReadonlySignal<RunInfo | undefined>
  readonly error: ReadonlySignal<CallError | undefined>
  /** The number of rows. */
  readonly total: ReadonlySignal<number>
  /** Changes whenever a row is loaded, added or replaced. */
  readonly version: ReadonlySignal<number>
  readonly selected: Signal<Selection | undefined>
  readonly detail: ReadonlySignal<RowDetail | undefined>
  /** The last words of an answer that is being written. */
  readonly tail: ReadonlySignal<string>
  readonly connection: ReadonlySignal<'open' | 'lost' | 'none' | 'deleted'>
  /** A newer run of the session. */
  readonly newer: ReadonlySignal<number | undefined>
  readonly showAllColumns: Signal<boolean>
  readonly columns: ReadonlySignal<readonly Column[]>
  readonly whatIf: Signal<WhatIfReport | undefined>
  row(index: number): Row | undefined
  /** Loads rows that are about to be shown, or used. */
  need(from: number, to: number): Promise<void>
  select(selection: Selection | undefined): void
  close(): void
}

export function openRun(source: RunSource, start: { readonly row?: number } = {}): RunModel {
  const info = signal<RunInfo>()
  const error = signal<CallError>()
  const total = signal(0)
  const version = signal(0)
  const selected = signal<Selection>()
  const detail = signal<RowDetail>()
  const tail = signal('')
  const connection = signal<'open' | 'lost' | 'none' | 'deleted'>('none')
  const newer = signal<number>()
  const showAllColumns = signal(false)
  const rows = new Map<number, Row>()
  const loading = new Map<number, Promise<void>>()
  let stop = (): void => undefined
  let closed = false
  let detailLoad = new AbortController()

  const put = (added: readonly Row[], all: number): void => {
    const open = selected.value?.row
    for (const row of added) rows.set(row.index, row)
    batch(() => {
      total.value = all
      version.value += 1
      error.value = undefined
    })
    if (open !== undefined && added.some(({ index }) => index === open)) loadDetail(open)
  }
  const fail = (cause: unknown): void => {
    if (!closed) error.value = toCallError(cause)
  }
  const need = async (from: number, to: number): Promise<void> => {
    const loads: Promise<void>[] = []
    for (let page = Math.floor(from / PAGE); page * PAGE < Math.min(to, total.value); page++) {
      const end = Math.min((page + 1) * PAGE, total.value)
      let isMissing = false
      for (let i = page * PAGE; i < end && !isMissing; i++) isMissing = !rows.has(i)
      if (isMissing) loads.push(loading.get(page) ?? loadPage(page))
    }
    await Promise.all(loads)
  }
  const loadPage = (page: number): Promise<void> => {
    const load = source
      .rows(page * PAGE, PAGE)
      // The stream may have brought a newer row while this page was on its way.
      .then(
        ({ rows: found, total: all }) =>
          put(
            found.filter(({ index }) => !rows.has(index)),
            Math.max(all, total.value),
          ),
        fail,
      )
      .finally(() => loading.delete(page))
    loading.set(page, load)
    return load
  }
  const loadDetail = (row: number): void => {
    detailLoad.abort()
    detailLoad = new AbortController()
    const { signal: current } = detailLoad
    source.row(row, current).then(
      (loaded) => {
        if (!current.aborted) detail.value = loaded
      },
      (cause: unknown) => {
        if (!current.aborted) fail(cause)
      },
    )
  }
  const select = (selection: Selection | undefined): void => {
    const isOther = selection?.row !== selected.value?.row
    selected.value = selection
    if (!isOther) return
    if (selection === undefined) detail.value = undefined
    else loadDetail(selection.row)
  }
  const take = (line: RunChange): void => {
    if (line.type === 'run') info.value = line.run
    else if (line.type === 'rows') {
      put(line.rows, line.total)
      tail.value = ''
    } else if (line.type === 'newRun') newer.value = line.run
    else if (line.type === 'deleted') {
      stop()
      connection.value = 'deleted'
    } else if (line.event.type === 'text') tail.value = (tail.value + line.event.delta).slice(-MAX_TAIL_CHARS)
  }

  /** Rows of the last steps may still change, for example when a question is answered. */
  const changeable = (): number => {
    const isOver = /^(completed|stopped|failed|cancelled)$/.test(info.value?.status ?? '')
    return isOver ? total.value : Math.max(0, total.value - CHANGEABLE)
  }
  source.run().then((loaded) => {
    if (closed) return
    batch(() => {
      info.value = loaded
      total.value = loaded.rows
    })
    if (start.row !== undefined && start.row < loaded.rows) select({ row: start.row })
    stop =
      source.follow?.(changeable, {
        line: take,
        state: (state) => {
          connection.value = state
        },
      }) ?? stop
  }, fail)

  return {
    source,
    info,
    error,
    total,
    version,
    selected,
    detail,
    tail,
    connection,
    newer,
    showAllColumns,
    columns: computed(() => {
      const all = info.value?.columns ?? []
      return showAllColumns.value ? all : all.filter(({ bookkeeping, decided }) => !bookkeeping || decided > 0)
    }),
    whatIf: signal<WhatIfReport>(),
    row: (index) => rows.get(index),
    need,
    select,
    close: () => {
      closed = true
      detailLoad.abort()
      stop()
    },
  }
}
