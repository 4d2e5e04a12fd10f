import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { RunModel } from './run-model.ts'
import { announcement } from './studio.ts'

export function SearchBar(props: {
  readonly model: RunModel
  readonly select: (row: number, column?: number) => void
  readonly close: () => void
}) {
  const { model } = props
  const field = useRef<HTMLInputElement>(null)
  const result = useSignal('')
  useLayoutEffect(() => field.current?.focus(), [])

  const find = async (back: boolean): Promise<void> => {
    const text = field.current!.value
    if (text === '') return
    const from = model.selected.peek()?.row ?? (back ? model.total.value : -1)
    const search = (start: number) => model.source.find({ from: start, back, what: { text } }).catch(() => null)
    const row = (await search(from)) ?? (await search(back ? model.total.value : -1)) // wraps around
    result.value = row === null ? 'Not found' : `Row ${row + 1} of ${model.total.value}`
    announcement.value = result.value
    if (row !== null) props.select(row)
  }
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        void find(false)
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape') {
          props.close()
          document.getElementById('matrix')?.focus()
        } else if (event.key === 'Enter' && event.shiftKey) {
          event.preventDefault()
          void find(true)
        }
      }}
    >
      <input
        ref={field}
        type="search"
        aria-label="Search the run"
        placeholder="Text, tool, hook, message …"
        spellcheck={false}
      />
      <button type="submit">Next</button>
      <button type="button" onClick={() => void find(true)}>
        Previous
      </button>
      <span class="quiet" role="status">
        {result.value}
      </span>
    </form>
  )
}
