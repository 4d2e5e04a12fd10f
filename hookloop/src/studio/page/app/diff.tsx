import { diffLines, diffWordsWithSpace, type ChangeObject } from 'diff'
import type { Change } from '../../../core/state/ledger.ts'
import type { Json, JsonObject } from '../../../values/json.ts'
import { count } from './format.ts'
import { LongText, Value, safe, textOf } from './text.tsx'

/** Two texts are compared line by line only up to here: beyond it, both are shown. */
const MAX_CHARS = 200_000
const MAX_EDITS = 2_000
const CONTEXT = 3

type Parts = readonly ChangeObject<string>[]

export function Diff({ before, after }: { readonly before: string; readonly after: string }) {
  const isSmall = before.length + after.length < MAX_CHARS
  if (isSmall && !before.includes('\n') && !after.includes('\n'))
    return <Words parts={diffWordsWithSpace(before, after)} />
  const parts = isSmall ? diffLines(before, after, { maxEditLength: MAX_EDITS }) : undefined
  if (parts === undefined)
    return (
      <div class="diff">
        <div class="del">
          <LongText text={before} />
        </div>
        <div class="add">
          <LongText text={after} />
        </div>
      </div>
    )
  return <Lines parts={parts} />
}

function Words({ parts }: { readonly parts: Parts }) {
  const side = (left: 'added' | 'removed', kind: string) => (
    <div class={kind}>
      {parts.map(
        (part) => !part[left] && (part.added || part.removed ? <mark>{safe(part.value)}</mark> : safe(part.value)),
      )}
    </div>
  )
  return (
    <div class="diff">
      {side('added', 'del')}
      {side('removed', 'add')}
    </div>
  )
}

function Lines({ parts }: { readonly parts: Parts }) {
  return (
    <div class="diff">
      {parts.flatMap((part, i) => {
        const lines = part.value.replace(/\n$/, '').split('\n')
        const kind = part.added ? 'add' : part.removed ? 'del' : 'same'
        const hidden = kind === 'same' ? lines.length - 2 * CONTEXT : 0
        if (hidden < 2) return lines.map((line, j) => <Line key={`${i}.${j}`} kind={kind} text={line} />)
        const head = i === 0 ? [] : lines.slice(0, CONTEXT)
        const tail = i === parts.length - 1 ? [] : lines.slice(-CONTEXT)
        return [
          ...head.map((line, j) => <Line key={`${i}.${j}`} kind={kind} text={line} />),
          <div key={i} class="gap">
            {count(lines.length - head.length - tail.length, 'equal line')}
          </div>,
          ...tail.map((line, j) => <Line key={`${i}.t${j}`} kind={kind} text={line} />),
        ]
      })}
    </div>
  )
}

function Line({ kind, text }: { readonly kind: string; readonly text: string }) {
  return <div class={kind}>{safe(text)}</div>
}

/** What a hook changed, field by field. */
export function Changes({ changes }: { readonly changes: readonly Change[] }) {
  return (
    <>
      {changes.map(({ path, before, after, added }, i) => (
        <div class="change" key={i}>
          <div class="path">{safe(path)}</div>
          {added !== undefined ? (
            <div class="diff">
              <div class="add">
                <LongText text={added} />
              </div>
            </div>
          ) : before !== undefined ? (
            <Diff before={textOf(before)} after={after === undefined ? '' : textOf(after)} />
          ) : (
            <>
              {after !== undefined && <Diff before="" after={textOf(after)} />}
              <p class="quiet">The value before is not recorded: it may be a secret, or there was none.</p>
            </>
          )}
        </div>
      ))}
    </>
  )
}

const PAIRS = [
  ['old_string', 'new_string'],
  ['old_text', 'new_text'],
  ['oldText', 'newText'],
  ['before', 'after'],
] as const

/** Arguments of a call. Those that replace a text by another are shown as a diff. */
export function Arguments({ args, exact = false }: { readonly args: Json; readonly exact?: boolean }) {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return <Value value={args} exact={exact} />
  const fields = args as JsonObject
  const pair = PAIRS.find((names) => names.every((name) => typeof fields[name] === 'string'))
  if (pair === undefined) return <Value value={fields} exact={exact} />
  const [from, to] = pair
  const { [from]: before, [to]: after, ...others } = fields
  return (
    <>
      {Object.keys(others).length > 0 && <Value value={others} exact={exact} />}
      <div class="path">
        {from} → {to}
      </div>
      <Diff before={textOf(before)} after={textOf(after)} />
    </>
  )
}
