import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type {
  SessionsChange,
  SessionsPosition,
  SessionsRequest,
  SessionStatus,
  SessionSummary,
} from '../../api.types.ts'
import { call, type CallError, follow, stream, toCallError } from './api.ts'
import { shortCount, count, moment, money, since } from './format.ts'
import { useKeys } from './keys.ts'
import { Problem, Status, Table } from './load.tsx'
import { download } from './download.ts'
import { go, link } from './router.ts'
import { now, studio } from './studio.ts'
import { safe, visible } from './text.tsx'

const STATUSES: readonly SessionStatus[] = [
  'running',
  'suspended',
  'interrupted',
  'completed',
  'stopped',
  'failed',
  'cancelled',
]

/** A filter is used when the user has stopped typing for so long. */
const TYPING_MS = 150

/** The sessions of the store, the latest first. The list changes while one watches. */
export function SessionsView() {
  const filter = useSignal<SessionsRequest>({})
  const sessions = useSignal<readonly SessionSummary[] | undefined>(undefined)
  const next = useSignal<SessionsPosition | undefined>(undefined)
  const error = useSignal<CallError | undefined>(undefined)
  const chosen = useSignal<readonly string[]>([])
  const isLoadingMore = useSignal(false)
  const search = useRef<HTMLInputElement>(null)

  useEffect(() => {
    const take = (line: SessionsChange): void => {
      error.value = undefined
      if (line.type === 'page') {
        sessions.value = line.sessions
        next.value = line.next
      } else sessions.value = merge(sessions.value ?? [], line)
    }
    let stop = (): void => undefined
    const start = (): void => {
      stop = follow((signal) => stream('sessions', filter.value, signal), {
        line: take,
        state: (_, cause) => {
          if (cause !== undefined) error.value = cause
        },
      })
    }
    const timer = setTimeout(start, sessions.value === undefined ? 0 : TYPING_MS)
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [filter.value])
  useKeys({ '/': () => search.current?.focus() })

  const change = (more: { readonly [K in keyof SessionsRequest]?: SessionsRequest[K] | undefined }): void => {
    const all = Object.entries({ ...filter.value, ...more }).filter(([, value]) => value !== undefined && value !== '')
    filter.value = Object.fromEntries(all)
  }
  const showMore = async (): Promise<void> => {
    if (next.value === undefined) return
    const asked = filter.value
    isLoadingMore.value = true
    try {
      const page = await call('sessions', { ...asked, after: next.value })
      if (asked !== filter.value) return // the user has changed the filter since
      sessions.value = merge(sessions.value ?? [], { sessions: page.sessions, deleted: [] })
      next.value = page.next
    } catch (cause) {
      error.value = toCallError(cause)
    } finally {
      isLoadingMore.value = false
    }
  }
  const choose = (id: string): void => {
    const others = chosen.value.filter((each) => each !== id)
    chosen.value = others.length < chosen.value.length ? others : [...others, id].slice(-2)
  }
  const all = sessions.value

  return (
    <main class="page wide" aria-busy={isLoadingMore.value}>
      <header class="page-head">
        <h1>Sessions</h1>
        {all !== undefined && (
          <p class="quiet">
            {`${count(all.length, 'session')}${next.value === undefined ? '' : ' so far'} · ${shortCount(sum(all, 'tokens'))} tokens · ${money(sum(all, 'costUsd'))}`}
          </p>
        )}
        {chosen.value.length > 0 && <Chosen ids={chosen.value} onError={(cause) => (error.value = cause)} />}
      </header>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <input
          ref={search}
          type="search"
          aria-label="Filter by text"
          placeholder="Text in title or conversation   /"
          onInput={(event) => change({ text: event.currentTarget.value })}
        />
        <select
          aria-label="Filter by status"
          onChange={({ currentTarget: { value } }) =>
            change({ status: value === '' ? undefined : [value as SessionStatus] })
          }
        >
          <option value="">any status</option>
          {STATUSES.map((status) => (
            <option key={status}>{status}</option>
          ))}
        </select>
        <Choice name="agent" values={(all ?? []).map(({ agent }) => agent)} change={(agent) => change({ agent })} />
        <Choice
          name="folder"
          values={[studio.value?.dir, ...(all ?? []).map(({ cwd }) => cwd)]}
          change={(cwd) => change({ cwd })}
        />
        <input
          type="number"
          min="0"
          step="0.01"
          aria-label="Filter by least cost in dollars"
          placeholder="cost from $"
          onChange={({ currentTarget: { value } }) => change({ minCostUsd: value === '' ? undefined : Number(value) })}
        />
      </form>
      {error.value !== undefined && <Problem error={error.value} />}
      {all === undefined && error.value === undefined && <div class="empty">Loading …</div>}
      {all?.length === 0 && (
        <div class="empty">
          {next.value !== undefined ? (
            <p>No session matches so far.</p>
          ) : Object.keys(filter.value).length > 0 ? (
            <p>No session matches.</p>
          ) : (
            <>
              <p>There is no session in this store yet.</p>
              <p class="quiet">
                Run an agent with a session: <code>hookloop run "Fix the tests"</code>. It appears here while it runs.
              </p>
            </>
          )}
        </div>
      )}
      {all !== undefined && all.length > 0 && (
        <Table list heads={['', 'status', 'session', 'agent', '#steps', '#tokens', '#cost', '#updated']}>
          {all.map((session) => (
            <SessionRow key={session.id} session={session} chosen={chosen.value.includes(session.id)} choose={choose} />
          ))}
        </Table>
      )}
      {next.value !== undefined && (
        <>
          {filter.value.text !== undefined && (
            <p class="quiet" role="status">
              {`Searched the sessions since ${moment(next.value.updatedAt)}.`}
            </p>
          )}
          <button type="button" class="wide" disabled={isLoadingMore.value} onClick={() => void showMore()}>
            {filter.value.text === undefined ? 'Show more' : 'Search older sessions'}
          </button>
        </>
      )}
    </main>
  )
}

/** A filter with suggestions. */
function Choice(props: {
  readonly name: string
  readonly values: readonly (string | undefined)[]
  readonly change: (value: string) => void
}) {
  const { name, values, change } = props
  return (
    <>
      <input
        type="text"
        list={`${name}s`}
        aria-label={`Filter by ${name}`}
        placeholder={name}
        onChange={(event) => change(event.currentTarget.value)}
      />
      <datalist id={`${name}s`}>
        {[...new Set(values)].map(
          (value) => value !== undefined && value !== '' && <option key={value} value={value} />,
        )}
      </datalist>
    </>
  )
}

/** What can be done with one or two sessions that were chosen. */
function Chosen({
  ids: [a, b],
  onError,
}: {
  readonly ids: readonly string[]
  readonly onError: (error: CallError) => void
}) {
  if (a === undefined) return null
  const fail = (cause: unknown): void => onError(toCallError(cause))
  const open = ({ session }: { readonly session: string }): void => go({ view: 'run', session, tab: 'decisions' })
  return (
    <div class="actions">
      {b === undefined ? (
        <>
          <span class="quiet">Choose another one to compare</span>
          <button type="button" onClick={() => void call('fork', { session: a }).then(open, fail)}>
            Fork
          </button>
          <button type="button" onClick={() => void call('export', { session: a, as: 'jsonl' }).then(download, fail)}>
            Export
          </button>
        </>
      ) : (
        <button
          type="button"
          class="primary"
          onClick={() => go({ view: 'compare', a: { session: a }, b: { session: b } })}
        >
          Compare the two
        </button>
      )}
    </div>
  )
}

function SessionRow(props: {
  readonly session: SessionSummary
  readonly chosen: boolean
  readonly choose: (id: string) => void
}) {
  const { session, chosen, choose } = props
  const { id, title, problem, pending } = session
  return (
    <tr class={problem === undefined ? '' : 'broken'}>
      <td>
        <input
          type="checkbox"
          aria-label={visible(`Compare ${title || id}`)}
          checked={chosen}
          onChange={() => choose(id)}
        />
      </td>
      <td>
        <Status of={session.status} />
        {session.live && <span class="live">live</span>}
      </td>
      <td class="main">
        <a href={link({ view: 'run', session: id, tab: 'decisions' })}>{safe(title || id)}</a>
        {pending > 0 && <span class="chip ask">{count(pending, 'question')}</span>}
        <span class="quiet sub">
          <code>{safe(id)}</code>
          {session.cwd !== undefined && <> {safe(session.cwd)}</>}
          {problem !== undefined && <span class="warning"> {safe(problem)}</span>}
        </span>
      </td>
      <td>{safe(session.agent)}</td>
      <td class="number" data-unit="steps">
        {count(session.steps)}
      </td>
      <td class="number" data-unit="tokens">
        {shortCount(session.tokens)}
      </td>
      <td class="number">{money(session.costUsd)}</td>
      <td class="number" title={moment(session.updatedAt)}>
        {since(session.updatedAt, now.value)}
      </td>
    </tr>
  )
}

function merge(
  known: readonly SessionSummary[],
  { sessions, deleted }: { readonly sessions: readonly SessionSummary[]; readonly deleted: readonly string[] },
): readonly SessionSummary[] {
  const byId = new Map([...known, ...sessions].map((session) => [session.id, session]))
  for (const id of deleted) byId.delete(id)
  return [...byId.values()].toSorted((a, b) => b.updatedAt - a.updatedAt)
}

function sum(sessions: readonly SessionSummary[], field: 'tokens' | 'costUsd'): number {
  return sessions.reduce((total, session) => total + session[field], 0)
}
