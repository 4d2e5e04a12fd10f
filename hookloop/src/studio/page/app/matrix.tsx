import { useEffect, useMemo } from 'preact/hooks'
import type { Column, Row } from '../../run.types.ts'
import { cellAt, legend, toneOf, wordFor } from './cells.ts'
import { duration, modeName } from './format.ts'
import { Icon } from './icons.tsx'
import { Status } from './load.tsx'
import type { RunModel } from './run-model.ts'
import { safe, visible } from './text.tsx'
import { type Scroller, Virtual } from './virtual.tsx'

/** Rows are higher where fingers select them. */
export const rowHeight = (): number => (matchMedia('(max-width: 700px)').matches ? 38 : 28)

/** Decisions × hooks: a row for each event of a run, a column for each hook. */
export function Matrix({
  model,
  control,
}: {
  readonly model: RunModel
  readonly control: { current: Scroller | null }
}) {
  const [columns, total, selected] = [model.columns.value, model.total.value, model.selected.value]
  const marks = useMarks(model)
  void model.version.value // rows are not signals
  const height = rowHeight()

  useEffect(() => {
    if (selected !== undefined) control.current?.show(selected.row)
    if (selected?.column !== undefined)
      document.getElementById(idOf(selected))?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [selected])

  const click = (event: Event): void => {
    const at = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-row]') : null
    if (at === null) return
    const { row, column } = at.dataset
    model.select({ row: Number(row), ...(column !== undefined && { column: Number(column) }) })
  }

  return (
    <Virtual
      control={control}
      total={total}
      rowHeight={height}
      startAtEnd={model.info.value?.live === true}
      onWindow={(from, to) => void model.need(from, to)}
      attributes={{
        role: 'grid',
        tabIndex: 0,
        id: 'matrix',
        'aria-label': 'Decisions of the run, one row per event and one column per hook',
        'aria-rowcount': total + 1,
        'aria-colcount': columns.length + 1,
        ...(selected !== undefined && { 'aria-activedescendant': idOf(selected) }),
        onClick: click,
      }}
      header={<Head columns={columns} />}
      render={(index) => {
        const row = model.row(index)
        const isSelected = selected?.row === index
        if (row === undefined) return <div class="row loading" role="row" aria-rowindex={index + 2} />
        const before = model.row(index - 1)
        return (
          <Line
            row={row}
            columns={columns}
            selected={isSelected ? (selected.column ?? -1) : undefined}
            startsStep={before !== undefined && before.step !== row.step && row.path === undefined}
            mark={marks.get(index)}
          />
        )
      }}
    />
  )
}

function Head({ columns }: { readonly columns: readonly Column[] }) {
  const groups: { readonly name: string; readonly columns: Column[] }[] = []
  for (const column of columns) {
    const last = groups.at(-1)
    if (last?.name === column.group) last.columns.push(column)
    else groups.push({ name: column.group, columns: [column] })
  }
  return (
    <div class="head" role="row" aria-rowindex={1}>
      <div class="label" role="columnheader">
        <ul class="legend" aria-hidden="true">
          {legend.slice(0, 7).map(({ word, icon, tone }) => (
            <li key={word}>
              <span class={`mark ${tone}`}>
                <Icon name={icon} />
              </span>
              {word}
            </li>
          ))}
        </ul>
        <span class="step">step</span>
        <span class="what">what happened</span>
        <span class="ms">time</span>
      </div>
      {groups.map((group) => (
        <div class="group" role="presentation" key={group.columns[0]!.id}>
          <div class="group-name" title={visible(group.name)}>
            {group.columns.length > 2 || group.name.length < 5 * group.columns.length ? safe(group.name) : ''}
          </div>
          <div class="names">
            {group.columns.map((column) => (
              <div
                key={column.id}
                role="columnheader"
                class={`name ${column.mode}${column.shadow ? ' shadow' : ''}`}
                title={titleOf(column)}
                aria-label={titleOf(column)}
              >
                <span>{safe(column.shadow ? `${column.hook} *` : column.hook)}</span>
              </div>
            ))}
          </div>
        </div>
      ))}
    </div>
  )
}

function titleOf({ hook, mode, shadow, group, definedAt, decided }: Column): string {
  const what = `${hook}: ${modeName(mode)}${shadow ? ' in shadow mode' : ''} at ${group}`
  return visible(`${what}, decided ${decided}×${definedAt === undefined ? '' : `, ${definedAt}`}`)
}

function Line(props: {
  readonly row: Row
  readonly columns: readonly Column[]
  /** The id of the selected column, -1 if the row itself is selected. */
  readonly selected: number | undefined
  readonly startsStep: boolean
  readonly mark: string | undefined
}) {
  const { row, columns, selected } = props
  const status = row.status === 'ok' || row.status === undefined ? undefined : row.status
  const classes = [
    'row',
    row.kind,
    props.startsStep && 'first',
    selected !== undefined && 'selected',
    props.mark && 'marked',
  ]
  return (
    <div
      class={classes.filter(Boolean).join(' ')}
      role="row"
      aria-rowindex={row.index + 2}
      aria-selected={selected !== undefined}
    >
      <div
        class={`label${selected === -1 ? ' active' : ''}`}
        role="rowheader"
        id={`r${row.index}`}
        data-row={row.index}
      >
        <span class="step">{row.kind === 'model' ? row.step + 1 : ''}</span>
        <span class={`kind ${toneOf(status)}`}>
          <Icon name={row.kind === 'input' ? 'user' : row.kind} />
        </span>
        <span class="what">
          {row.path !== undefined && <span class="path-of">{safe(row.path.join(' › '))}</span>}
          {row.name !== undefined && (row.kind !== 'model' || row.step === 0) && <b>{safe(row.name)}</b>}
          {row.text === '' && row.kind === 'model' ? <span class="quiet">no text</span> : safe(row.text)}
        </span>
        {props.mark !== undefined && <span class="chip change">{safe(props.mark)}</span>}
        {status !== undefined && <Status of={status} />}
        <span class="ms">{row.ms === undefined ? '' : duration(row.ms)}</span>
      </div>
      {columns.map((column, i) => {
        const cell = cellAt(row, column)
        const startsGroup = i === 0 || columns[i - 1]!.group !== column.group
        return (
          <div
            key={column.id}
            id={`r${row.index}c${column.id}`}
            role="gridcell"
            data-row={row.index}
            data-column={column.id}
            class={`cell${startsGroup ? ' start' : ''}${selected === column.id ? ' active' : ''}`}
            aria-label={`${visible(column.hook)}: ${wordFor(row, column)}`}
          >
            {cell === 'nothing' ? (
              <i class="dot" />
            ) : (
              cell !== null && (
                <span class={`mark ${cell.tone}${column.shadow ? ' shadow' : ''}`}>
                  <Icon name={cell.icon} />
                </span>
              )
            )}
          </div>
        )
      })}
    </div>
  )
}

function idOf({ row, column }: { readonly row: number; readonly column?: number }): string {
  return column === undefined ? `r${row}` : `r${row}c${column}`
}

/** What other hooks would have decided, by row. */
function useMarks({ whatIf }: RunModel): ReadonlyMap<number, string> {
  const report = whatIf.value
  return useMemo(() => {
    const marks = new Map<number, string>()
    for (const { row, would, divergence } of report?.differences ?? [])
      if (row !== null) marks.set(row, `⇒ ${divergence ?? would}`)
    const leaves = report?.divergesAt?.row
    if (leaves !== undefined && leaves !== null) marks.set(leaves, `${marks.get(leaves) ?? '⇒'} ◄ leaves the record`)
    return marks
  }, [report])
}
