import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { AnswerRequest } from '../../api.types.ts'
import type { Json, JsonObject } from '../../../values/json.ts'
import type { Question } from '../../run.types.ts'
import { call, toCallError } from './api.ts'
import { Arguments, Diff } from './diff.tsx'
import { moment, since } from './format.ts'
import { Warnings } from './load.tsx'
import { link } from './router.ts'
import { announcement, now, studio } from './studio.ts'
import { safe, textOf, visible } from './text.tsx'

/** A question that waits for an answer: what would run, who asks, and the three answers. */
export function QuestionCard({ question, linked = false }: { readonly question: Question; readonly linked?: boolean }) {
  const form = useSignal<'edit' | 'block' | undefined>(undefined)
  const text = useSignal('')
  const state = useSignal<{ readonly busy?: boolean; readonly error?: string; readonly done?: string }>({})
  const resume = useSignal(true)
  const field = useRef<HTMLTextAreaElement>(null)
  useLayoutEffect(() => field.current?.focus(), [form.value])
  const hasAgent = studio.value?.agent !== undefined
  const { name: tool, args } = question.toolCall

  const answer = async (given: AnswerRequest['answer'], done: string): Promise<void> => {
    const { session, id, hash } = question
    state.value = { busy: true }
    try {
      await call('answer', { session, question: id, hash, answer: given, ...(hasAgent && { resume: resume.value }) })
      state.value = { done }
      announcement.value = done
    } catch (cause) {
      state.value = { error: toCallError(cause).message }
    }
  }
  const edited = form.value === 'edit' ? parseArgs(text.value) : undefined
  const submit = (event: Event): void => {
    event.preventDefault()
    if (form.value === 'block') void answer({ type: 'block', reason: text.value.trim() }, 'Blocked.')
    else if (typeof edited === 'object') void answer({ type: 'edit', args: edited }, 'Allowed with your arguments.')
  }
  const open = (which: 'edit' | 'block'): void => {
    form.value = form.value === which ? undefined : which
    text.value = which === 'edit' ? JSON.stringify(args, undefined, 2) : ''
  }
  const { busy = false, error, done } = state.value

  return (
    <article class="question" aria-label={visible(`${tool}: ${question.message}`)}>
      <header>
        <b class="mono">{safe(question.trigger === undefined ? tool : `at ${question.trigger}`, true)}</b>
        {question.path !== undefined && (
          <span class="path-of">{safe(question.path.map(({ agent }) => agent).join(' › '))}</span>
        )}
        {linked && (
          <a href={link({ view: 'run', session: question.session, tab: 'decisions' })}>
            {safe(question.title || question.session)}
          </a>
        )}
        <span class="quiet" title={moment(question.askedAt)}>
          {since(question.askedAt, now.value)}
          {question.expiresAt !== undefined && `, expires ${moment(question.expiresAt)}`}
        </span>
      </header>
      {question.asks.map((ask, i) => (
        <p key={i} class="ask">
          <b>{safe(ask.by)}</b> {safe(ask.message)}
        </p>
      ))}
      {question.interruptions !== undefined && question.interruptions > 0 && (
        <p class="warning">
          The process died {question.interruptions}× while it ran this call. It may have taken effect.
        </p>
      )}
      <Arguments args={args} exact />
      <p class="quiet">
        hash <code title={question.hash}>{question.hash.slice(0, 12)}</code>
        {' · '}an answer is valid for exactly these arguments
      </p>
      {done !== undefined ? (
        <p class="done" role="status">
          {done}
        </p>
      ) : (
        <>
          <div class="buttons">
            <button
              type="button"
              class="primary"
              disabled={busy}
              onClick={() => void answer({ type: 'allow' }, 'Allowed.')}
            >
              Allow exactly this
            </button>
            <button
              type="button"
              disabled={busy || question.notEditable !== undefined}
              title={question.notEditable}
              aria-expanded={form.value === 'edit'}
              onClick={() => open('edit')}
            >
              Edit…
            </button>
            <button
              type="button"
              class="danger"
              disabled={busy}
              aria-expanded={form.value === 'block'}
              onClick={() => open('block')}
            >
              Block…
            </button>
            {hasAgent && (
              <label class="check">
                <input type="checkbox" checked={resume.value} onChange={() => (resume.value = !resume.value)} /> resume
                here
              </label>
            )}
          </div>
          {form.value !== undefined && (
            <form onSubmit={submit}>
              <label>
                {form.value === 'edit' ? 'Arguments as JSON' : 'Reason, which the model receives'}
                <textarea
                  class="mono"
                  rows={form.value === 'edit' ? 8 : 2}
                  value={text.value}
                  spellcheck={false}
                  ref={field}
                  onInput={(event) => (text.value = event.currentTarget.value)}
                />
              </label>
              {typeof edited === 'string' && <p class="warning">{edited}</p>}
              {typeof edited === 'object' && textOf(edited) !== textOf(args) && (
                <Diff before={textOf(args)} after={textOf(edited)} />
              )}
              <button type="submit" class="primary" disabled={busy || typeof edited === 'string'}>
                {form.value === 'edit' ? 'Allow with these arguments' : 'Block'}
              </button>
            </form>
          )}
        </>
      )}
      <Warnings texts={[error]} />
    </article>
  )
}

/** The arguments, or what is wrong with the text. */
function parseArgs(text: string): JsonObject | string {
  try {
    const value = JSON.parse(text) as Json
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as JsonObject) : 'The arguments must be a JSON object.'
  } catch (cause) {
    return cause instanceof Error ? cause.message : 'This is not JSON.'
  }
}
