import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { CallError, toCallError } from './api.ts'
import { toneOf } from './cells.ts'
import { safe } from './text.tsx'

/** What a call answers or fails with, undefined until then. Calls again when one of the inputs changes. */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[],
): T | CallError | undefined {
  const [state, setState] = useState<T | CallError>()
  useEffect(() => {
    const left = new AbortController()
    load(left.signal).then(
      (loaded) => !left.signal.aborted && setState(() => loaded),
      (cause: unknown) => !left.signal.aborted && setState(toCallError(cause)),
    )
    return () => left.abort()
  }, inputs)
  return state
}

export function Loaded<T>({
  of: value,
  children,
}: {
  readonly of: T | CallError | undefined
  readonly children: (value: T) => ComponentChildren
}) {
  if (value === undefined) return <div class="empty">Loading …</div>
  return value instanceof CallError ? <Problem error={value} /> : <>{children(value)}</>
}

export function Problem({ error }: { readonly error: CallError }) {
  return (
    <div class="empty" role="alert">
      <p class="warning">{safe(error.message)}</p>
      <p class="quiet">{error.code}</p>
    </div>
  )
}

/** Texts that the user must not miss. */
export function Warnings({ texts }: { readonly texts: readonly (string | undefined)[] }) {
  return (
    <>
      {texts.map(
        (text, i) =>
          text !== undefined &&
          text !== '' && (
            <p key={i} class="warning" role="alert">
              {safe(text)}
            </p>
          ),
      )}
    </>
  )
}

/** A table with these heads. Those that start with `#` are of columns with numbers. */
export function Table({
  heads,
  children,
  list = false,
}: {
  readonly heads: readonly string[]
  readonly children: ComponentChildren
  readonly list?: boolean
}) {
  return (
    <table class={list ? 'list' : ''}>
      <thead>
        <tr>
          {heads.map((head) => (
            <th key={head} class={head.startsWith('#') ? 'number' : ''}>
              {head.replace('#', '')}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  )
}

export function Status({ of: status }: { readonly of: string }) {
  return <span class={`chip ${toneOf(status)}`}>{status}</span>
}
