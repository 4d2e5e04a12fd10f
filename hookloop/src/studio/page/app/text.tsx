import { useState } from 'preact/hooks'
import type { Json } from '../../../values/json.ts'
import { escapeInvisible as visible, revealInvisible } from '../../../system/sanitize-text.ts'
import { size } from './format.ts'

// Everything that a model, a tool or a user wrote is shown by these components: always as text, never as HTML, a link or an
// image. What a reader cannot see is escaped and marked.

export { visible }

const MAX_CHARS = 4_000
const MORE_CHARS = 100_000
const PIECE_CHARS = 1_000
const PIECE = /[^]{1,1000}/gu
const ESCAPED = /(\\u\{[0-9a-f]+\}|\[\d+ spaces\])/

/** A text in a line. With `exact`, long runs of spaces are escaped as well. */
export function safe(text: string, exact = false) {
  return <Text exact={exact}>{text}</Text>
}

function Text({ children: text, exact = false }: { readonly children: string; readonly exact?: boolean }) {
  const shown = exact ? revealInvisible(text) : visible(text)
  const parts = shown === text ? [text] : shown.split(ESCAPED)
  return <bdi>{parts.map((part, i) => (i % 2 === 0 ? breakable(part) : <span class="escaped">{part}</span>))}</bdi>
}

/** A browser takes long to break a very long word into lines, unless it is told where it may. */
function breakable(text: string) {
  if (text.length <= PIECE_CHARS) return text
  return text.match(PIECE)!.map((piece) => (
    <>
      {piece}
      <wbr />
    </>
  ))
}

/** A text of any length, as it was written. The beginning of a long one, and the rest on request. */
export function LongText({ text, exact = false }: { readonly text: string; readonly exact?: boolean }) {
  const [shown, show] = useState(MAX_CHARS)
  const more = text.length - shown
  return (
    <>
      <pre class="long">
        <Text exact={exact}>{more > 0 ? text.slice(0, shown) : text}</Text>
      </pre>
      {more > 0 && (
        <button type="button" class="more" onClick={() => show(shown + MORE_CHARS)}>
          Show {more > MORE_CHARS ? `${size(MORE_CHARS)} more` : 'the rest'} ({size(more)} hidden)
        </button>
      )}
    </>
  )
}

export function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : (JSON.stringify(value, undefined, 2) ?? '')
}

/** A JSON value. The fields of an object one below the other, texts without quotes and escapes. */
export function Value({ value, exact = false }: { readonly value: Json; readonly exact?: boolean }) {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return <LongText text={textOf(value)} exact={exact} />
  const fields = Object.entries(value)
  if (fields.length === 0) return <p class="quiet">No arguments.</p>
  return (
    <dl class="fields">
      {fields.map(([name, field]) => (
        <div key={name}>
          <dt>
            <Text exact={exact}>{name}</Text>
          </dt>
          <dd>
            <LongText text={textOf(field)} exact={exact} />
          </dd>
        </div>
      ))}
    </dl>
  )
}
