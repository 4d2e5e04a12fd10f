import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { TimedLedgerEntry } from '../../../core/state/ledger.ts'
import type { RowDetail } from '../../run.types.ts'
import { Arguments, Changes, Diff } from './diff.tsx'
import { duration, modeName, moment, money, shortCount } from './format.ts'
import { Icon } from './icons.tsx'
import { Status, Table, Warnings } from './load.tsx'
import { QuestionCard } from './question.tsx'
import type { RunModel } from './run-model.ts'
import { dialog } from './studio.ts'
import { LongText, Value, safe, textOf, visible } from './text.tsx'

const TITLES = {
  input: 'User input',
  model: 'Model call',
  call: 'Tool call',
  votes: 'Votes',
  end: 'End of the run',
  note: 'Note',
}

/** All about the selected row: who decided what and why, what was changed, what ran. */
export function Detail({ model, canFork }: { readonly model: RunModel; readonly canFork: boolean }) {
  const [detail, selected] = [model.detail.value, model.selected.value]
  if (selected === undefined)
    return (
      <div class="empty">
        <p>Select a row or a cell to see who decided, and why.</p>
        <p class="quiet">
          <kbd>n</kbd> goes to the next decision, <kbd>↑</kbd> <kbd>↓</kbd> <kbd>←</kbd> <kbd>→</kbd> move.
        </p>
      </div>
    )
  if (detail === undefined) return <div class="empty">Loading …</div>
  const { row } = detail
  const hook = model.columns.value.find(({ id }) => id === selected.column)?.hook
  const isAbout = (entry: TimedLedgerEntry): boolean => row.index === selected.row && entry.hook === hook
  const entries = detail.entries.toSorted((a, b) => Number(isAbout(b)) - Number(isAbout(a)))
  return (
    <div class="detail" aria-busy={row.index !== selected.row}>
      <header>
        <h2>
          {TITLES[row.kind]}
          {row.name !== undefined && <code>{safe(row.name)}</code>}
          {row.status !== undefined && <Status of={row.status} />}
        </h2>
        <p class="quiet">
          {row.kind !== 'input' && `step ${row.step + 1}`}
          {row.path !== undefined && safe(` of ${row.path.join(' › ')}`)}
          {row.at !== undefined && ` · ${moment(row.at)}`}
          {row.ms !== undefined && ` · ${duration(row.ms)}`}
          {detail.usage !== undefined &&
            ` · ${shortCount(detail.usage.inputTokens)} in, ${shortCount(detail.usage.outputTokens)} out · ${money(detail.usage.costUsd)}`}
        </p>
      </header>
      {detail.question !== undefined && <QuestionCard key={detail.question.id} question={detail.question} />}
      {entries.map((entry, i) => (
        <Entry key={i} entry={entry} isAbout={isAbout(entry)} />
      ))}
      {detail.votes !== undefined && <Votes votes={detail.votes} />}
      <Warnings texts={detail.errors} />
      <Content detail={detail} />
      {canFork && row.forkAt !== undefined && (
        <button type="button" class="wide" onClick={() => (dialog.value = 'fork')}>
          <Icon name="fork" /> Fork after step {row.step + 1} <kbd>f</kbd>
        </button>
      )}
    </div>
  )
}

function Entry({ entry, isAbout }: { readonly entry: TimedLedgerEntry; readonly isAbout: boolean }) {
  const box = useRef<HTMLElement>(null)
  useEffect(() => {
    if (isAbout) box.current?.scrollIntoView({ block: 'nearest' })
  }, [isAbout])
  const { decision, message, value, error, changes = [], warnings = [] } = entry
  const word = error !== undefined ? 'failed' : (decision ?? (changes.length > 0 ? 'changed' : 'warned'))
  return (
    <section ref={box} class={`entry${isAbout ? ' about' : ''}`} aria-label={visible(`${entry.hook}: ${word}`)}>
      <h3>
        {safe(entry.hook)}
        <span class={`chip ${toneOfDecision(word)}${entry.shadow ? ' shadow' : ''}`}>{safe(word)}</span>
        {entry.shadow && <span class="quiet">shadow: recorded, not applied</span>}
      </h3>
      {message !== undefined && (
        <div class="why">
          <LongText text={message} />
        </div>
      )}
      {error !== undefined && (
        <div class="warning">
          <LongText text={error} />
        </div>
      )}
      {value !== undefined && <LongText text={textOf(value)} />}
      <Changes changes={changes} />
      <Warnings texts={warnings.map((each) => each.message)} />
      <p class="where">
        {`${modeName(entry.mode)} at ${entry.trigger} · ${duration(entry.durationMs)}`}
        {entry.definedAt !== undefined && <code>{safe(entry.definedAt)}</code>}
      </p>
    </section>
  )
}

function toneOfDecision(word: string): string {
  if (/block|fail|withh|reject|forbid/i.test(word)) return 'bad'
  if (/ask/i.test(word)) return 'ask'
  if (/stop|continu/i.test(word)) return 'stop'
  return /chang/i.test(word) ? 'change' : /allow|recover/i.test(word) ? 'good' : 'plain'
}

function Votes({ votes }: { readonly votes: NonNullable<RowDetail['votes']> }) {
  return (
    <section class="vote-count">
      <h3>{votes.shouldContinue ? 'The run continues' : 'The run stops'}</h3>
      <p class="why">{safe(votes.how)}</p>
      <Table heads={['hook', 'vote', 'why']}>
        {votes.evaluations.map((vote, i) => (
          <tr key={i} class={vote.source === votes.resolvedBy ? 'winner' : ''}>
            <td>{safe(vote.source)}</td>
            <td class="mono">{vote.decision}</td>
            <td>
              {safe(vote.message)}
              <span class="quiet">{` ${vote.reason}`}</span>
            </td>
          </tr>
        ))}
      </Table>
    </section>
  )
}

function Content({ detail }: { readonly detail: RowDetail }) {
  const { text, args, originalArgs, output, question } = detail
  return (
    <>
      {text !== '' && (
        <Part title={detail.row.kind === 'call' ? 'Text' : 'Content'}>
          <LongText text={text} />
        </Part>
      )}
      {args !== undefined && question === undefined && (
        <Part title="Arguments">
          <Arguments args={args} />
        </Part>
      )}
      {originalArgs !== undefined && (
        <Part title="Changed by hooks, from what the model sent">
          <Diff before={textOf(originalArgs)} after={textOf(args)} />
        </Part>
      )}
      {output !== undefined && (
        <Part title="Output">
          <Value value={output} />
        </Part>
      )}
    </>
  )
}

function Part({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <section>
      <h3 class="part">{title}</h3>
      {children}
    </section>
  )
}
